// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpffs

import (
	"fmt"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/fsmount"
	"github.com/slipway-dev/slipway/internal/mountinfo"
	"github.com/slipway-dev/slipway/mount"
)

// Propagation selects whether a mount must appear in other mount namespaces too.
type Propagation uint8

const (
	// AnyPropagation requires nothing. It suits the host, and a thread that has
	// entered the host's mount namespace.
	AnyPropagation Propagation = iota

	// Shared requires that a new mount also appears outside the container, so that
	// it outlives the container. For that, the mount on which it is made must be in
	// a peer group (shared:N in proc_pid_mountinfo(5)) and, if the mounts of pid 1
	// can be read, one of them must be in the same group. In a pod with its own pid
	// namespace, Apply cannot tell whether the host is among the peers. A bpffs
	// that is already mounted is not checked: in a new container, it can only have
	// come from the host.
	Shared
)

// checkPropagation returns an error with the remedy if a new mount would end with
// the container.
func (m Mount) checkPropagation(k mount.Mounter, p fsmount.Place) error {
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
		return fmt.Errorf("bpffs on %s: the parent of the new mount is not listed in %s", p.Path, mountinfo.Path)
	case parent.Shared() && fsmount.SharedWithInit(k, parent):
		return nil
	case parent.Shared():
		return code.Errorf(code.BPFFSNotShared, "mount bpf on %s: the host would not see it, since the mount on %s is shared, but not with pid 1, "+
			"as in a systemd unit with private mounts: enter pid 1's mount namespace, or leave PrivateMounts= and ProtectSystem= out",
			p.Path, parent.Point)
	}
	return code.Errorf(code.BPFFSNotShared, "mount bpf on %s: it would vanish with this container, since the mount on %s is not shared: "+
		"give the volume mountPropagation: Bidirectional, and if the host's own mount is not shared, run there: mount --make-shared %s",
		p.Path, parent.Point, parent.Point)
}
