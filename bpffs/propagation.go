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

// checkPropagation returns an error with the remedy if a new mount would end with
// the container.
func (m Mount) checkPropagation(k mount.Mounter, p fsmount.Place) error {
	if !m.Shared {
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
