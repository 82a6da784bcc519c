// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup/internal/filetree"
	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/input"
)

// netnsDir is where network namespaces have names, for every tool.
const netnsDir = "/var/run/netns"

// netnsObject is the object of a name: a namespace, or the empty file that remains of one.
type netnsObject struct{ fileObject }

func findNetNS(ctx context.Context, s *search) error {
	if len(s.own.NetNS) == 0 {
		return nil
	}
	names, err := input.ReadNames(ctx, netnsDir, s.own.ownsNetNS)
	var errs failure.Set
	errs.Add(filetree.NotThere(err))
	slices.Sort(names)
	for _, name := range names {
		errs.Add(s.foundNetNS(name))
	}
	return errs.Join()
}

// foundNetNS reads nothing of a file: a name may be a device or a pipe.
func (s *search) foundNetNS(name string) error {
	path := filepath.Join(netnsDir, name)
	t, err := filetree.Open(path)
	if t == nil {
		return err
	}
	defer t.Close()
	var own unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &own); err != nil {
		return &os.PathError{Op: "stat", Path: "/proc/thread-self/ns/net", Err: err}
	}
	item := Item{Kind: kindNetNS, Object: name, object: netnsObject{fileObject{path, t.ID}}}
	switch {
	case t.ID == filetree.InodeOf(&own):
		s.leave(item, "the one that this cleanup runs in")
		return nil
	case t.Empty && !t.Mount: // of a namespace before a reboot, or in another mount namespace
		item.Detail = "a name of none"
	case !t.Mount || !isNetNS(path):
		s.leave(item, "not a network namespace")
		return nil
	}
	s.found(item)
	return nil
}

// isNetNS distinguishes network namespaces from those of other kinds.
func isNetNS(path string) bool {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil || fs.Type != unix.NSFS_MAGIC {
		return false
	}
	ns, err := netns.GetFromPath(path)
	if err != nil {
		return false
	}
	defer ns.Close()
	kind, err := unix.IoctlRetInt(int(ns), unix.NS_GET_NSTYPE)
	return err == nil && kind == unix.CLONE_NEWNET
}

// remove takes the name away. Processes stay in the namespace.
func (o netnsObject) remove(context.Context, *removal) error {
	t, err := o.look()
	if t == nil {
		return err
	}
	defer t.Close()
	if t.Mount {
		// A name may be mounted on more than once.
		if err := unmountNetNS(o.path, o.id); err != nil {
			return err
		}
	}
	return t.Remove()
}

func unmountNetNS(path string, id filetree.Inode) error {
	for {
		err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
			return nil // nothing is mounted there any more
		}
		if err != nil {
			return &os.PathError{Op: "unmount", Path: path, Err: err}
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil || filetree.InodeOf(&st) != id {
			return nil
		}
	}
}
