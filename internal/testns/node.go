// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package testns

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
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
	// empty tmpfs. It may mount there, and must make the folders dev, proc and sys. It
	// runs in the node's mount namespace, where the machine's files are still visible, on
	// a thread of its own: it must not start goroutines.
	Root func(dir string) error
}

// Node is a running throw-away node, as the package comment describes. Several goroutines
// may use it.
type Node struct{ node }

// StartNode makes a node. The caller closes it; if the caller's process dies, pid 1 of
// the node notices and ends the node; only its empty cgroup stays. Cancelling ctx ends
// StartNode, not the node.
func StartNode(ctx context.Context, options NodeOptions) (*Node, error) {
	n := &Node{}
	if err := n.start(ctx, options); err != nil {
		return nil, fmt.Errorf("start throw-away node: %w", err)
	}
	return n, nil
}

// Proc returns a directory that shows the node's processes, as /hostproc does
// in a container: Proc()+"/1" is its pid 1. It is a path of the machine's and
// exists until Close. A process of the machine that enters the node through it finds no
// /proc/self there, since the node's pid namespace does not show it; one that was started
// on the node does, also from a container in it.
func (n *Node) Proc() string { return n.proc() }

// Do calls f in the mount, cgroup, net, uts and ipc namespaces of the node, as
// hostns.Do does: on a thread of its own, which f must not leave by starting
// goroutines. Mounts that f makes or removes are the node's, but f sees them through a
// copy of the namespace, so that it can have the caller's /proc (/proc/self, with the
// node's pid 1 as /proc/1): remounting with other flags does not reach the node.
func (n *Node) Do(ctx context.Context, f func(context.Context) error) error {
	return n.do(ctx, f)
}

// StartCommand starts cmd in all namespaces and in the cgroup of the node, with / as its
// working directory unless cmd.Dir names another. Killing cmd.Process kills the program
// itself. The caller waits for it before Close.
func (n *Node) StartCommand(cmd *exec.Cmd) error { return n.startCommand(cmd) }

// Listen makes a unix socket at path on the node, and its folder if that is missing. The
// caller accepts.
func (n *Node) Listen(path string) (net.Listener, error) {
	var l net.Listener
	err := n.do(context.Background(), func(context.Context) (err error) {
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

// Kill kills every process of the node, so that a Wait for them returns.
func (n *Node) Kill() error { return n.kill() }

// Close kills every process of the node, waits for its pid 1, which ends after
// all others, and removes its cgroup. A program that was started on the node
// and not waited for keeps pid 1 from ending; Close then returns an error after
// some seconds. It may be called again.
func (n *Node) Close() error { return n.close() }
