// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// place is a folder that is watched for changes of what.
type place struct {
	dir         string
	what        scope
	interesting func(name string) bool
}

const (
	wayMask  = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | selfMask
	fileMask = wayMask | unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB
	selfMask = unix.IN_DELETE_SELF | unix.IN_MOVE_SELF
	addMask  = unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW | unix.IN_EXCL_UNLINK | unix.IN_MASK_ADD
	goneMask = selfMask | unix.IN_UNMOUNT | unix.IN_IGNORED
)

// inotify watches places, and each folder on the way to them, so that one that
// is replaced is noticed too. It uses the kernel's interface itself: watches
// are added by the calling thread alone, in its mount namespace, and the file
// is read through Go's poller, which waits for any number of files without a
// thread or a timer of their own.
type inotify struct {
	file   *os.File
	raw    syscall.RawConn
	places []place
	roles  map[int32][]role // by watch descriptor
}

// role is what a watched folder is watched for: for files, or for one name,
// which is the next on the way to a place.
type role struct {
	place
	next string // empty: it is the place
}

func newInotify(places []place) (*inotify, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("inotify: %w (raise fs.inotify.max_user_instances, or the limit of open files)", err)
	}
	n := &inotify{file: os.NewFile(uintptr(fd), "inotify"), places: places}
	if n.raw, err = n.file.SyscallConn(); err == nil {
		err = n.arm()
	}
	if err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

func (n *inotify) close() { n.file.Close() }

// arm watches every folder on the way to each place, from the top: one that is
// replaced meanwhile is an event in the folder above, which is watched then.
func (n *inotify) arm() error {
	before := n.roles
	n.roles = map[int32][]role{}
	for _, p := range n.places {
		err := walk(p.dir, func(dir, next string) error {
			mask := uint32(wayMask)
			if next == "" {
				mask = fileMask
			}
			wd, err := n.add(dir, mask)
			if err == nil {
				n.roles[wd] = append(n.roles[wd], role{p, next})
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	for wd := range before {
		if n.roles[wd] == nil { // not on the way any more, or gone already
			n.raw.Control(func(fd uintptr) { _, _ = unix.InotifyRmWatch(int(fd), uint32(wd)) })
		}
	}
	return nil
}

func (n *inotify) add(dir string, mask uint32) (int32, error) {
	wd, addErr := 0, error(nil)
	err := n.raw.Control(func(fd uintptr) { wd, addErr = unix.InotifyAddWatch(int(fd), dir, mask|addMask) })
	if err = errors.Join(err, addErr); errors.Is(err, unix.ENOSPC) {
		return 0, fmt.Errorf("inotify: watch %s: %w (raise fs.inotify.max_user_watches)", dir, err)
	} else if err != nil {
		return 0, fmt.Errorf("inotify: watch %s: %w", dir, hint(err))
	}
	return int32(wd), nil
}

// walk visits the folders on the way to path, symbolic links resolved, with
// the name that leads on in each; the last one with none, if it is there.
func walk(path string, visit func(dir, next string) error) error {
	const maxLinks = 40 // as in the kernel
	dir, links := "/", 0
	for rest := split(path); len(rest) > 0; {
		next := rest[0]
		rest = rest[1:]
		if next == ".." {
			dir = filepath.Dir(dir)
			continue
		}
		if err := visit(dir, next); err != nil {
			return ignoreVanished(err)
		}
		info, err := os.Lstat(filepath.Join(dir, next))
		switch {
		case err != nil:
			return nil // it may come
		case info.Mode().Type() != os.ModeSymlink:
			dir = filepath.Join(dir, next)
			continue
		}
		target, err := os.Readlink(filepath.Join(dir, next))
		if links++; err != nil || links > maxLinks {
			return nil
		}
		if filepath.IsAbs(target) {
			dir = "/"
		}
		rest = append(split(target), rest...)
	}
	return ignoreVanished(visit(dir, ""))
}

func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// ignoreVanished: what is no folder any more was one when it was looked at, so
// there is an event in the folder above.
func ignoreVanished(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return err
}

// wait reads events until one is interesting.
func (n *inotify) wait(ctx context.Context, until time.Time) (scope, error) {
	if err := n.file.SetReadDeadline(until); err != nil {
		return 0, err
	}
	fired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { // touches no path
		n.file.SetReadDeadline(time.Unix(1, 0))
		close(fired)
	})
	defer func() {
		if !stop() {
			<-fired
		}
	}()
	buf := make([]byte, 16<<10)
	for {
		size, err := n.file.Read(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, nil
		}
		if err != nil {
			return 0, fmt.Errorf("inotify: %w", err)
		}
		what, stale := n.interpret(buf[:size])
		if stale {
			if err := n.arm(); err != nil {
				return what, err
			}
		}
		if what != 0 {
			return what, nil
		}
	}
}

// interpret says what the events are about, and whether a folder on the way
// to it is another one now.
func (n *inotify) interpret(events []byte) (what scope, stale bool) {
	for len(events) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(events))
		mask := binary.NativeEndian.Uint32(events[4:])
		end := unix.SizeofInotifyEvent + binary.NativeEndian.Uint32(events[12:])
		name := strings.TrimRight(string(events[unix.SizeofInotifyEvent:end]), "\x00")
		events = events[end:]
		if mask&unix.IN_Q_OVERFLOW != 0 {
			return everything, true
		}
		for _, r := range n.roles[wd] {
			switch {
			case mask&goneMask != 0, r.next != "" && r.next == name:
				what, stale = what|r.what, true
			case r.next == "" && name != "" && r.interesting(name):
				what |= r.what
			}
		}
	}
	return what, stale
}
