// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/input"
)

const kindNetNS = "network namespace"

// netnsDir is where network namespaces have names, for every tool.
const netnsDir = "/var/run/netns"

// netnsRef identifies what a name stands for: a namespace, or the empty file
// that is left of one.
type netnsRef struct {
	name string
	id   inode
}

// netnsAt is what is at a name.
type netnsAt struct {
	id        inode
	mounted   bool // a namespace
	leftover  bool // an empty file, after a reboot or in another mount namespace
	processes bool // it is the namespace of this thread
}

func findNetNS(ctx context.Context, s *session) error {
	if len(s.own.NetNS) == 0 {
		return nil
	}
	dir, err := openNetNSDir()
	if dir == nil {
		return err
	}
	defer dir.Close()
	names, err := input.Collect(ctx, netnsDir, input.Names(dir), s.own.ownsNetNS)
	var errs errorSet
	errs.add(err)
	slices.Sort(names)
	for _, name := range names {
		errs.add(s.foundNetNS(dir, name))
	}
	return errs.join()
}

func (o *owned) ownsNetNS(name string) bool {
	for _, pattern := range o.NetNS {
		if match, _ := path.Match(pattern, name); match {
			return true
		}
	}
	return false
}

func (s *session) foundNetNS(dir *os.File, name string) error {
	at, err := lookAtNetNS(dir, name)
	if err != nil || at == nil {
		return err
	}
	item := Item{Kind: kindNetNS, Object: name}
	switch {
	case at.processes:
		item.Detail = "the one that this cleanup runs in"
		s.leave(item)
		return nil
	case at.leftover:
		item.Detail = "a name of none"
	case !at.mounted:
		item.Detail = "not a network namespace"
		s.leave(item)
		return nil
	}
	item.ref = netnsRef{name, at.id}
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
func lookAtNetNS(dir *os.File, name string) (*netnsAt, error) {
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
	at := &netnsAt{id: inodeOf(&st)}
	if fs.Type == unix.NSFS_MAGIC {
		at.mounted = isNetNS(filepath.Join(netnsDir, name))
		at.processes = at.id == inodeOf(&own)
	} else {
		at.leftover = st.Mode&unix.S_IFMT == unix.S_IFREG && st.Size == 0
	}
	return at, nil
}

// isNetNS tells network namespaces from those of other kinds.
func isNetNS(path string) bool {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	kind, err := unix.IoctlRetInt(fd, unix.NS_GET_NSTYPE)
	return err == nil && kind == unix.CLONE_NEWNET
}

// removeNetNS takes the name away. Whoever is in the namespace stays there.
func removeNetNS(_ context.Context, _ *session, item Item) error {
	ref, ok := item.ref.(netnsRef)
	if !ok {
		return fmt.Errorf("identity of type %T", item.ref)
	}
	dir, err := openNetNSDir()
	if dir == nil {
		return err
	}
	defer dir.Close()
	at, err := lookAtNetNS(dir, ref.name)
	if err != nil || at == nil {
		return err
	}
	if at.id != ref.id {
		return errOther
	}
	full := filepath.Join(netnsDir, ref.name)
	if at.mounted {
		// A name may be mounted on more than once.
		if err := unmountNetNS(full, ref.id); err != nil {
			return err
		}
	}
	return removing(full, unlink(int(dir.Fd()), ref.name, false))
}

func unmountNetNS(path string, id inode) error {
	for {
		err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
			return nil // nothing is mounted there any more
		}
		if err != nil {
			return &os.PathError{Op: "unmount", Path: path, Err: err}
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil || inodeOf(&st) != id {
			return nil
		}
	}
}
