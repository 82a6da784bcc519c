// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/slipway-dev/slipway/cleanup/internal/filetree"
	"github.com/slipway-dev/slipway/internal/cniresult"
	"github.com/slipway-dev/slipway/internal/failure"
)

// fileObject is a file.
type fileObject struct {
	path string
	id   filetree.Inode
}

// findFiles lists owned files, in the order in which they are given, and those
// of them that were set aside.
func findFiles(ctx context.Context, s *search) error {
	var errs failure.Set
	for _, path := range s.own.Files {
		errs.Add(s.foundFile(path, ""))
	}
	asides, err := s.own.asides(ctx)
	errs.Add(err)
	for _, a := range asides {
		if s.own.ownsFile(a.original()) {
			errs.Add(s.foundFile(a.path(), "the agent's own, set aside"))
		}
	}
	return errs.Join()
}

func (s *search) foundFile(path, detail string) error {
	t, err := filetree.Open(path)
	if t == nil {
		return err
	}
	defer t.Close()
	item := Item{Kind: kindFile, Object: path, Detail: detail, object: fileObject{path, t.ID}}
	switch {
	case s.keep.Keeps(t.Path), s.again(t):
	case t.Mount:
		s.leave(item, "something is mounted on it")
	case t.IsDir:
		s.leave(item, "it is a directory")
	default:
		s.found(item)
	}
	return nil
}

// remove removes no file beside a configuration that was set aside and did not
// get its name back: the file may be the last configuration that is loaded.
func (o fileObject) remove(ctx context.Context, r *removal) error {
	t, err := o.open()
	if t == nil {
		return err
	}
	defer t.Close()
	if aside := r.unrestored[t.Dir]; aside != "" {
		return fmt.Errorf("left as it is, because %s beside it did not get its name back", aside)
	}
	if !r.strandPods && r.own.isCNIFolder(filepath.Dir(o.path)) {
		if err := cniresult.FileInUse(ctx, cniresult.Dirs(""), o.path); err != nil {
			return err
		}
	}
	return t.Remove()
}

// open returns nil, and no error, where the file is gone.
func (o fileObject) open() (*filetree.Tree, error) {
	t, err := filetree.Open(o.path)
	if t == nil {
		return nil, err
	}
	switch {
	case t.ID != o.id:
		err = failure.ErrReplaced
	case t.Mount:
		err = errors.New("something is mounted on it; left as it is")
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}
