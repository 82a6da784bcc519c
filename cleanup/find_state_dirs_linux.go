// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/cleanup/internal/filetree"
	"github.com/slipway-dev/slipway/internal/failure"
)

// stateDirObject is a state directory, or a file that has its name.
type stateDirObject struct{ fileObject }

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
	var kept []string // in it
	full, err := t.Walk(ctx, s.keep, nil, func(e filetree.Entry) (bool, error) {
		switch {
		case e.Kept && !e.Below:
			kept = append(kept, strings.TrimPrefix(e.Path(), t.Path+"/"))
			return true, nil
		case e.Kept || e.Full:
			return true, nil
		case e.IsDir:
			dirs++
		case !e.Mount:
			files++
		}
		return false, nil
	})
	self := s.keep.Keeps(t.Path)
	if (full || t.Mount || self) && files+dirs == 0 {
		return err
	}
	s.found(Item{
		Kind:   kindStateDir,
		Object: path,
		Detail: stateDirDetail(t, files, dirs, self, kept),
		object: stateDirObject{fileObject{t.Path, t.ID}},
	}, s.stateDirsOf(t.Path)...)
	return err
}

// stateDirsOf names the state directories that a path is in, with which it goes.
func (s *search) stateDirsOf(path string) (names []string) {
	for i, dir := range s.stateDirs {
		if strings.HasPrefix(path, dir+"/") {
			names = append(names, nameOf(kindStateDir, s.own.StateDirs[i]))
		}
	}
	return names
}

func stateDirDetail(t *filetree.Tree, files, dirs int, self bool, kept []string) string {
	switch {
	case t.LinkTo != "":
		return "a symbolic link to " + t.LinkTo + "; what it leads to is left as it is"
	case !t.IsDir:
		return "a file"
	}
	detail := count(files, "file", "files") + ", " + count(dirs, "directory", "directories")
	switch {
	case t.Mount:
		detail += "; a mount point: emptied, not removed"
	case self:
		detail += "; the directory itself is kept"
	}
	if len(kept) > 0 {
		detail += "; kept in it: " + some(kept)
	}
	return detail
}

// some names the first of a list, and counts the others.
func some(names []string) string {
	const most = 3
	slices.Sort(names)
	text := strings.Join(names[:min(most, len(names))], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func (o stateDirObject) remove(ctx context.Context, r *removal) error {
	t, err := o.look()
	if t == nil {
		return err
	}
	defer t.Close()
	return t.RemoveAll(ctx, r.keep)
}
