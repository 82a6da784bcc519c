// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"fmt"

	"github.com/slipway-dev/slipway/cleanup/internal/filetree"
	"github.com/slipway-dev/slipway/internal/failure"
)

// stateDirObject is a state directory, or a file that has its name.
type stateDirObject struct {
	path string
	id   filetree.Inode
}

// findStateDirs lists the state directories.
func findStateDirs(ctx context.Context, s *search) error {
	var errs failure.Set
	for _, path := range s.own.StateDirs {
		if err := s.findStateDir(ctx, path); err != nil {
			errs.Add(fmt.Errorf("%s: %w", path, err))
		}
	}
	return errs.Join()
}

func (s *search) findStateDir(ctx context.Context, path string) error {
	t, err := filetree.Open(path)
	if t == nil {
		return err
	}
	defer t.Close()
	if s.again(t) {
		return nil
	}
	files, dirs := 0, 0
	full, err := t.Walk(ctx, s.keep, func(e filetree.Entry) (bool, error) {
		switch {
		case e.Kept || e.Full:
			return true, nil
		case e.IsDir:
			dirs++
		case !e.Mount:
			files++
		}
		return false, nil
	})
	remains := full || t.Mount || s.keep.Keeps(t.Path)
	if remains && files+dirs == 0 {
		return err
	}
	s.found(Item{
		Kind:   kindStateDir,
		Object: path,
		Detail: stateDirDetail(t, files, dirs, remains),
		object: stateDirObject{t.Path, t.ID},
	})
	return err
}

func stateDirDetail(t *filetree.Tree, files, dirs int, remains bool) string {
	switch {
	case t.LinkTo != "":
		return "a symbolic link to " + t.LinkTo + "; what it leads to is left as it is"
	case !t.IsDir:
		return "a file"
	}
	detail := count(files, "file", "files") + ", " + count(dirs, "directory", "directories")
	switch {
	case t.Mount:
		return detail + "; a mount point: emptied, not removed"
	case remains:
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

func (o stateDirObject) remove(ctx context.Context, r *removal) error {
	t, err := filetree.Open(o.path)
	if t == nil {
		return err
	}
	defer t.Close()
	if t.ID != o.id {
		return failure.ErrReplaced
	}
	return t.RemoveAll(ctx, r.keep)
}
