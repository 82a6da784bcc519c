// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup/internal/filetree"
	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/input"
)

// netnsDir is where network namespaces have names, for every tool.
const netnsDir = "/var/run/netns"

// netnsObject is the object of a name: a namespace, or the empty file that remains of one.
type netnsObject struct {
	name string
	id   filetree.Inode
}

// netnsFile is a file in netnsDir.
type netnsFile struct {
	netnsObject
	mounted bool // a namespace
	empty   bool // of a namespace before a reboot, or in another mount namespace
	current bool // the namespace of this thread
}

func findNetNS(ctx context.Context, s *search) error {
	if len(s.own.NetNS) == 0 {
		return nil
	}
	dir, err := openNetNSDir()
	if dir == nil {
		return err
	}
	defer dir.Close()
	names, err := input.Collect(ctx, netnsDir, input.Names(dir), s.own.ownsNetNS)
	var errs failure.Set
	errs.Add(err)
	slices.Sort(names)
	for _, name := range names {
		errs.Add(s.foundNetNS(dir, name))
	}
	return errs.Join()
}

func (s *search) foundNetNS(dir *os.File, name string) error {
	f, err := lookAtNetNS(dir, name)
	if err != nil || f == nil {
		return err
	}
	item := Item{Kind: kindNetNS, Object: name, object: f.netnsObject}
	switch {
	case f.current:
		s.leave(item, "the one that this cleanup runs in")
		return nil
	case f.empty:
		item.Detail = "a name of none"
	case !f.mounted:
		s.leave(item, "not a network namespace")
		return nil
	}
	s.found(item)
	return nil
}

// openNetNSDir returns nil, and no error, where there is no such directory.
func openNetNSDir() (*os.File, error) {
	dir, err := os.Open(netnsDir)
	if err != nil {
		return nil, notThere(err)
	}
	return dir, nil
}

// lookAtNetNS returns nil where the name is gone.
func lookAtNetNS(dir *os.File, name string) (*netnsFile, error) {
	// Nothing of the file is read: a name may be a device or a pipe.
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: filepath.Join(netnsDir, name), Err: err}
	}
	defer unix.Close(fd)
	var st, own unix.Stat_t
	var fs unix.Statfs_t
	if err := errors.Join(unix.Fstat(fd, &st), unix.Fstatfs(fd, &fs)); err != nil {
		return nil, &os.PathError{Op: "stat", Path: filepath.Join(netnsDir, name), Err: err}
	}
	if err := unix.Stat("/proc/thread-self/ns/net", &own); err != nil {
		return nil, &os.PathError{Op: "stat", Path: "/proc/thread-self/ns/net", Err: err}
	}
	f := &netnsFile{netnsObject: netnsObject{name, filetree.InodeOf(&st)}}
	if fs.Type == unix.NSFS_MAGIC {
		f.mounted = isNetNS(filepath.Join(netnsDir, name))
		f.current = f.id == filetree.InodeOf(&own)
	} else {
		f.empty = st.Mode&unix.S_IFMT == unix.S_IFREG && st.Size == 0
	}
	return f, nil
}

// isNetNS distinguishes network namespaces from those of other kinds.
func isNetNS(path string) bool {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	kind, err := unix.IoctlRetInt(fd, unix.NS_GET_NSTYPE)
	return err == nil && kind == unix.CLONE_NEWNET
}

// remove takes the name away. Processes stay in the namespace.
func (o netnsObject) remove(context.Context, *removal) error {
	dir, err := openNetNSDir()
	if dir == nil {
		return err
	}
	defer dir.Close()
	now, err := lookAtNetNS(dir, o.name)
	if err != nil || now == nil {
		return err
	}
	if now.netnsObject != o {
		return failure.ErrReplaced
	}
	path := filepath.Join(netnsDir, o.name)
	if now.mounted {
		// A name may be mounted on more than once.
		if err := unmountNetNS(path, o.id); err != nil {
			return err
		}
	}
	return filetree.RemoveFile(int(dir.Fd()), path)
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
