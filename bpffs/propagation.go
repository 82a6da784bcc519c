// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpffs

import (
	"fmt"

	"github.com/slipway-dev/slipway/internal/fsmount"
	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// Propagation is what is asked of a mount's way out of its mount namespace.
type Propagation uint8

const (
	// AnyPropagation asks nothing. It is right on the host, and for a thread
	// that has entered the host's mount namespace.
	AnyPropagation Propagation = iota

	// Shared asks that a new mount also appears in the namespaces that the one
	// it is made upon comes from, so that it outlives the container: that one
	// must be in a peer group (shared:N in proc_pid_mountinfo(5)), and pid 1
	// in the same group, where its mounts can be read; in a pod with a pid
	// namespace of its own, whether the host is among the peers cannot be seen.
	// A bpffs that is already mounted is not asked: in a new container it can
	// only have come from the host.
	//
	// Revert recognizes a mount by its identity in the namespace where it was
	// made. From another container it is left; use the host's namespace there.
	Shared
)

// checkPropagation says how to fix a mount that would end with the container.
func (m Mount) checkPropagation(k fsmount.Kernel, p fsmount.Place) error {
	if m.Propagation != Shared {
		return nil
	}
	infos, err := fsmount.Mounts(k)
	if err != nil {
		return fmt.Errorf("bpffs on %s: %w", p.Path, err)
	}
	parent, ok := mountinfo.Holding(infos, p.Path)
	switch {
	case !ok:
		return fmt.Errorf("bpffs on %s: the mount that it would be made upon is not listed in %s", p.Path, mountinfo.Path)
	case parent.Shared() && fsmount.SharedWithInit(k, parent):
		return nil
	case parent.Shared():
		return fmt.Errorf("mount bpf on %s: the host would not see it, since the mount on %s is shared, but not with pid 1, "+
			"as in a systemd unit with private mounts: enter pid 1's mount namespace, or leave PrivateMounts= and ProtectSystem= out",
			p.Path, parent.Point)
	}
	return fmt.Errorf("mount bpf on %s: it would vanish with this container, since the mount on %s is not shared: "+
		"give the volume mountPropagation: Bidirectional, and if the host's own mount is not shared, run there: mount --make-shared %s",
		p.Path, parent.Point, parent.Point)
}
