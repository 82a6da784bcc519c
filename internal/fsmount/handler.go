// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/mountinfo"
	"github.com/slipway-dev/slipway/mount"
)

// Handler undoes the mounts of the package Kind.
type Handler struct {
	Kind, FSType string
	Kernel       mount.Mounter
	// Keep, if not nil, returns an error if the mount on path must stay. It ignores paths
	// for which goes returns true: they are removed first.
	Keep func(k mount.Mounter, path string, goes func(path string) bool) error
}

func (h Handler) files() journal.Files { return journal.Files{Kind: h.Kind} }

// Kinds lists the kinds of the mounts and of the directories under them.
func (h Handler) Kinds() []string { return Kinds(h.Kind) }

// Kinds lists the kinds of entries that the package kind makes.
func Kinds(kind string) []string { return append(journal.Files{Kind: kind}.Kinds(), mountKind(kind)) }

// Owns returns an error for a mount that cannot have been made here.
func (h Handler) Owns(e journal.Entry) error {
	switch {
	case e.Kind != mountKind(h.Kind):
		return h.files().Owns(e)
	case !strings.HasPrefix(e.Object, "/") || e.Object == "/":
		return fmt.Errorf("%q is not an absolute path below /", e.Object)
	case !strings.HasPrefix(e.After.Value, sourcePrefix) || strings.Contains(e.After.Value, "/"):
		return fmt.Errorf("its source does not start with %s", sourcePrefix)
	}
	return nil
}

// Find finds the mounts that were made here, by any agent.
func (h Handler) Find(context.Context) (found []journal.Marked, err error) {
	mounts, err := Mounts(h.Kernel)
	for _, m := range mounts {
		if mark, ours := markOf(m.Source); ours && m.FSType == h.FSType {
			found = append(found, journal.Marked{Mark: mark, Kind: mountKind(h.Kind), Object: m.Point, Value: m.Source, Remove: "umount " + m.Point})
		}
	}
	return found, err
}

// Look reports what undoing e would do.
func (h Handler) Look(ctx context.Context, p *journal.Pass, e journal.Entry) (journal.Undo, error) {
	if e.Kind != mountKind(h.Kind) {
		return h.lookDir(ctx, p, e)
	}
	there, err := h.there(e, p.WillRemove)
	if err != nil || !there {
		return journal.Undo{}, err
	}
	return journal.Undo{
		Change: "unmount " + h.FSType + " from " + e.Object, Removes: []string{e.Object},
		Run: func(context.Context) error { return h.unmount(e) },
	}, nil
}

// lookDir leaves a directory alone on which another program has mounted.
func (h Handler) lookDir(ctx context.Context, p *journal.Pass, e journal.Entry) (journal.Undo, error) {
	if !p.WillRemove(e.Object) && !p.WillKeep(e.Object) {
		if err := h.uncovered(e); err != nil {
			return journal.Undo{}, err
		}
	}
	u, err := h.files().Look(ctx, p, e)
	if remove := u.Run; remove != nil {
		u.Run = func(ctx context.Context) error {
			if p.WillKeep(e.Object) {
				return remove(ctx)
			}
			if err := h.uncovered(e); err != nil {
				return err
			}
			return remove(ctx)
		}
	}
	return u, err
}

func (h Handler) uncovered(e journal.Entry) error {
	fstype, _, mount, err := h.Kernel.Stat(e.Object)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && mount != "":
		return fmt.Errorf("directory %s is %w: %s is mounted on it, so it is kept", e.Object, journal.ErrChanged, fstype)
	}
	return err
}

func (h Handler) unmount(e journal.Entry) error {
	there, err := h.there(e, func(string) bool { return false })
	if err != nil || !there {
		return err
	}
	err = hint(h.FSType, h.unmountRecorded(e))
	if errors.Is(err, syscall.EBUSY) {
		return fmt.Errorf("%w (a process has a file or its working directory there, or something is mounted below)", err)
	}
	return err
}

// unmountRecorded unmounts only the recorded mount: another process may have exchanged the
// directories meanwhile.
func (h Handler) unmountRecorded(e journal.Entry) error {
	sources := []string{e.After.Value, "none"} // the source of a mount without one
	if e.Was != nil {
		sources = append(sources, e.Was.Value)
	}
	return unmountOnly(h.Kernel, e.Object, func(m mountinfo.Mount) bool {
		return m.FSType == h.FSType && (slices.Contains(sources, m.Source) || leftByOthers(e, m))
	})
}

// unmountOnly unmounts the topmost mount on path if it is meant, as far as the kernel can
// identify it.
func unmountOnly(k mount.Mounter, path string, meant func(mountinfo.Mount) bool) error {
	only, ok := k.(interface {
		UnmountOnly(path string, meant func(mountinfo.Mount) bool) error
	})
	if !ok {
		return k.Unmount(path)
	}
	return only.UnmountOnly(path, meant)
}

// covered reports whether another mount hides one that may be the recorded one: a mount
// without a source is recognised by its content, which is hidden.
func (h Handler) covered(on []mountinfo.Mount) bool {
	for _, m := range on[:max(len(on)-1, 0)] {
		if m.FSType == h.FSType && m.Source == "none" {
			return true
		}
	}
	return false
}

// leftByOthers reports whether m is a mount that other agents have made, and left to the
// agent of e.
func leftByOthers(e journal.Entry, m mountinfo.Mount) bool {
	return strings.HasPrefix(m.Source, sourcePrefix) && e.MatchesAfter(journal.State{Type: "mount", Value: m.Source})
}

// there reports whether the mount of e exists, is visible, and may go. It is recognised
// by its unique source, in any mount namespace. If it returns false and nil, the mount is
// gone.
func (h Handler) there(e journal.Entry, goes func(path string) bool) (bool, error) {
	on, err := mountsOn(h.Kernel, e.Object)
	if err != nil {
		return false, err
	}
	at := find(h.Kernel, on, h.FSType, e.After.Value)
	if at < 0 && e.Was != nil {
		at = find(h.Kernel, on, h.FSType, e.Was.Value)
	}
	if at < 0 {
		at = slices.IndexFunc(on, func(m mountinfo.Mount) bool { return m.FSType == h.FSType && leftByOthers(e, m) })
	}
	switch {
	case at >= 0 && at < len(on)-1, at < 0 && h.covered(on):
		return false, fmt.Errorf("the mount on %s is left: %s is mounted over it; unmount that first", e.Object, on[len(on)-1].FSType)
	case at >= 0 && h.Keep != nil:
		return true, h.Keep(h.Kernel, e.Object, goes)
	case at >= 0:
		return true, nil
	case e.Namespace != mountinfo.Namespace():
		return false, fmt.Errorf("the mount on %s is left, and recorded: it was made in the mount namespace %s, and this is %s", e.Object, e.Namespace, mountinfo.Namespace())
	case len(on) > 0 && on[len(on)-1].Whole():
		return false, fmt.Errorf("the mount on %s is %w: it is not the one made here, so it is kept", e.Object, journal.ErrChanged)
	}
	return false, nil
}
