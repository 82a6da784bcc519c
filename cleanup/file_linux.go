// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// fileRef identifies a file.
type fileRef struct {
	path string
	id   inode
}

// asideRef identifies a configuration that was set aside.
type asideRef struct {
	fileRef
	name string // that it gets back, in the same directory
}

// findFiles lists owned files, in the order in which they are given.
func findFiles(_ context.Context, s *session) error {
	var errs errorSet
	for _, path := range s.own.Files {
		errs.add(s.foundFile(path))
	}
	return errs.join()
}

func (s *session) foundFile(path string) error {
	t, err := openTree(path)
	if t == nil {
		return err
	}
	defer t.close()
	item := Item{Kind: kindFile, Object: path, ref: fileRef{path, t.id}}
	switch {
	case s.kept.holds(t.path):
	case t.mount:
		s.leaveAs(item, "something is mounted on it")
	case t.dir:
		s.leaveAs(item, "it is a directory")
	default:
		s.found(item)
	}
	return nil
}

func (s *session) leaveAs(item Item, why string) {
	item.Detail, item.ref = why, nil
	s.leave(item)
}

func removeFile(_ context.Context, _ *session, item Item) error {
	ref, ok := item.ref.(fileRef)
	if !ok {
		return fmt.Errorf("identity of type %T", item.ref)
	}
	t, err := ref.open()
	if t == nil {
		return err
	}
	defer t.close()
	return unlink(int(t.parent.Fd()), t.name, t.path, false)
}

// open returns nil, and no error, where the file is gone.
func (r fileRef) open() (*tree, error) {
	t, err := openTree(r.path)
	if t == nil {
		return nil, err
	}
	switch {
	case t.id != r.id:
		err = errOther
	case t.mount:
		err = errors.New("something is mounted on it; left as it is")
	}
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// findAside lists configurations that were set aside.
func findAside(_ context.Context, s *session) error {
	var errs errorSet
	for _, pattern := range s.own.SetAside {
		dir, suffix := filepath.Dir(pattern), strings.TrimPrefix(filepath.Base(pattern), "*")
		entries, err := os.ReadDir(dir)
		if err != nil {
			errs.add(notThere(err))
			continue
		}
		for _, entry := range entries {
			if name, ok := strings.CutSuffix(entry.Name(), suffix); ok && name != "" {
				errs.add(s.foundAside(filepath.Join(dir, entry.Name()), name, suffix))
			}
		}
	}
	return errs.join()
}

func (s *session) foundAside(path, name, suffix string) error {
	t, err := openTree(path)
	if t == nil {
		return err
	}
	defer t.close()
	original := filepath.Join(filepath.Dir(path), name)
	item := Item{Kind: kindAside, Object: path, Detail: "gets its name back: " + name, ref: asideRef{fileRef{path, t.id}, name}}
	switch {
	case s.kept.holds(t.path), s.kept.holds(filepath.Join(filepath.Dir(t.path), name)):
	case t.mount:
		s.leaveAs(item, "something is mounted on it")
	case t.dir:
		s.leaveAs(item, "it is a directory")
	case s.own.ownsFile(original):
		s.found(Item{Kind: kindFile, Object: path, Detail: "the agent's own, set aside", ref: fileRef{path, t.id}})
	case strings.HasSuffix(name, suffix):
		s.leaveAs(item, "it was set aside twice")
	case exists(original):
		s.leaveAs(item, name+" is there")
	default:
		s.found(item)
	}
	return nil
}

func (o *owned) ownsFile(path string) bool {
	path = resolveParents(path)
	for _, file := range o.Files {
		if resolveParents(file) == path {
			return true
		}
	}
	return false
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// restoreAside gives a configuration its name back, and never to another file's
// loss.
func restoreAside(_ context.Context, _ *session, item Item) error {
	ref, ok := item.ref.(asideRef)
	if !ok {
		return fmt.Errorf("identity of type %T", item.ref)
	}
	t, err := ref.open()
	if t == nil {
		return err
	}
	defer t.close()
	dir := int(t.parent.Fd())
	err = unix.Renameat2(dir, t.name, dir, ref.name, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		err = linkAside(dir, t.name, ref.name) // the file system knows no such rename
	}
	switch {
	case errors.Is(err, unix.EEXIST):
		return fmt.Errorf("%s is there by now; left as it is: %w", ref.name, err)
	case err != nil:
		return &os.LinkError{Op: "rename", Old: t.path, New: ref.name, Err: unlinkHint(dir, t.name, err)}
	}
	return os.NewSyscallError("sync "+filepath.Dir(t.path), unix.Fsync(dir))
}

func linkAside(dir int, from, to string) error {
	if err := unix.Linkat(dir, from, dir, to, 0); err != nil {
		return err
	}
	return unix.Unlinkat(dir, from, 0)
}
