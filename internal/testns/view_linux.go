// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package testns

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/hostns"
)

// do runs f in the node's namespaces, except that the mount namespace is a copy.
//
// The thread belongs to a process outside the node's pid namespace: the node's
// /proc does not show it, so /proc/self would be missing. The copy has a /proc
// of the caller's instead, with the node's pid 1 as /proc/1. All its other mounts are
// peers of the node's, so that mounts and unmounts by f reach the node.
func (n *node) do(ctx context.Context, f func(context.Context) error) error {
	return n.enter(ctx, func(ctx context.Context) error {
		if err := n.ownView(); err != nil {
			return fmt.Errorf("show the caller's /proc on the node: %w", err)
		}
		return f(ctx)
	})
}

// enter runs f in exactly the node's namespaces.
func (n *node) enter(ctx context.Context, f func(context.Context) error) error {
	return hostns.Do(ctx, n.initDir(), everyNamespace, f)
}

func (n *node) ownView() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare the mount namespace: %w", err)
	}
	// Nothing below /proc may reach a peer.
	if err := mount("", "/proc", "", unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	// It shows the thread's pid namespace, which is the caller's.
	if err := mount("proc", "/proc", "proc", hardened, ""); err != nil {
		return err
	}
	if err := mount(n.initDir(), "/proc/1", "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return protectMachine()
}
