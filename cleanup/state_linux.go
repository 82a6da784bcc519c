// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// stateRef identifies a state directory.
type stateRef struct {
	path string
	id   inode
}

// findState lists the state directories.
func findState(ctx context.Context, s *session) error {
	var errs errorSet
	for _, path := range s.own.StateDirs {
		if err := s.findStateDir(ctx, path); err != nil {
			errs.add(fmt.Errorf("%s: %w", path, err))
		}
	}
	return errs.join()
}

func (s *session) findStateDir(ctx context.Context, path string) error {
	t, err := openTree(path)
	if t == nil {
		return err
	}
	defer t.close()
	if s.again(t) {
		return nil
	}
	files, dirs := 0, 0
	full, err := t.walk(ctx, s.kept, func(e entry) (bool, error) {
		switch {
		case e.kept || e.full:
			return true, nil
		case e.dir:
			dirs++
		case !e.mount:
			files++
		}
		return false, nil
	})
	stays := full || t.mount || s.kept.holds(t.path)
	if stays && files+dirs == 0 {
		return err
	}
	s.found(Item{
		Kind:   kindStateDir,
		Object: path,
		Detail: stateDetail(t, files, dirs, stays),
		ref:    stateRef{t.path, t.id},
	})
	return err
}

func stateDetail(t *tree, files, dirs int, stays bool) string {
	switch {
	case t.link != "":
		return "a symbolic link to " + t.link + "; what it leads to stays"
	case !t.dir:
		return "a file"
	}
	detail := count(files, "file", "files") + ", " + count(dirs, "directory", "directories")
	switch {
	case t.mount:
		return detail + "; a mount point: emptied, not removed"
	case stays:
		return detail + "; something in it is kept"
	}
	return detail
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func removeState(ctx context.Context, s *session, item Item) error {
	if ref, ok := item.ref.(stateRef); ok {
		return s.removeStateDir(ctx, ref)
	}
	return fmt.Errorf("identity of type %T", item.ref)
}

func (s *session) removeStateDir(ctx context.Context, ref stateRef) error {
	t, err := openTree(ref.path)
	if t == nil {
		return err
	}
	defer t.close()
	if t.id != ref.id {
		return errOther
	}
	full, err := t.walkWith(ctx, s.kept, &walker{visit: removeEntry, removes: true})
	if err != nil || full || t.mount || s.kept.holds(t.path) {
		return err
	}
	err = removing(t.path, unlink(t.fd(), t.name, t.dir))
	if errors.Is(err, unix.ENOTEMPTY) {
		return fmt.Errorf("%w (something was added meanwhile)", err)
	}
	return err
}

// removeEntry reports whether it stays.
func removeEntry(e entry) (left bool, err error) {
	switch {
	case e.kept || e.full:
		return true, nil
	case e.mount:
		return true, removing(told(e.levels, e.name), errors.New("something is mounted on it"))
	}
	if err := unlink(e.parent, e.name, e.dir); err != nil {
		return true, removing(told(e.levels, e.name), err)
	}
	return false, nil
}
