// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package testns

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// NodeOptions configure a node. The zero value is a node named "slipway-node".
type NodeOptions struct {
	// Hostname is the node's host name; if empty, "slipway-node".
	Hostname string
	// Controllers gives the node the cgroup controllers that a container runtime and a
	// kubelet need. If the machine has hierarchies of version 1, the node also has a
	// cgroup of its own in each, mounted as on the machine. Elsewhere its own cgroup2 has
	// the controllers that the machine's has for others, and its processes are in one
	// below, named init: a cgroup with controllers accepts none itself.
	Controllers bool
	// Root makes the node's root file system, instead of the usual one, in dir: an
	// empty tmpfs. It may mount there, and must make the directories dev, proc and sys. It
	// runs in the node's mount namespace, where the machine's files are still visible, on
	// a thread of its own: it must not start goroutines.
	Root func(dir string) error
}

// Listen makes a unix socket at path on the node, and its directory if that is missing. The
// caller accepts.
func (n *Node) Listen(path string) (net.Listener, error) {
	var l net.Listener
	err := n.Do(context.Background(), func(context.Context) (err error) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		l, err = net.Listen("unix", path)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen on the node: %w", err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // its path is the node's
	return l, nil
}
