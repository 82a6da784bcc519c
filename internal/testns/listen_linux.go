// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package testns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

func (n *node) listen(path string, holder *exec.Cmd) (net.Listener, error) {
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
	end, err := n.hold(l.(*net.UnixListener), holder)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen on the node: %w", err), l.Close())
	}
	return held{l, end}, nil
}

// held is a listener that a process of the node has open too.
type held struct {
	net.Listener
	end func() error
}

func (h held) Close() error { return errors.Join(h.Listener.Close(), h.end()) }

// hold starts the holder, and returns a function that ends it.
func (n *node) hold(l *net.UnixListener, holder *exec.Cmd) (end func() error, err error) {
	socket, err := l.File()
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	holder.ExtraFiles = []*os.File{socket}
	stdin, err := holder.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := n.startCommand(holder); err != nil {
		return nil, errors.Join(err, stdin.Close())
	}
	// For inheritance it was made blocking; both share one file description.
	if err := unix.SetNonblock(int(socket.Fd()), true); err != nil {
		return nil, errors.Join(err, stdin.Close(), holder.Wait())
	}
	return sync.OnceValue(func() error {
		_ = stdin.Close()
		_ = holder.Wait() // it may have been killed with the node
		return nil
	}), nil
}
