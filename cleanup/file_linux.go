// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"
)

// fileRef identifies a file.
type fileRef struct {
	path string
	id   inode
}

// findFiles lists owned files, in the order in which they are given, and those
// of them that were set aside.
func findFiles(ctx context.Context, s *session) error {
	var errs errorSet
	for _, path := range s.own.Files {
		errs.add(s.foundFile(path, ""))
	}
	asides, err := s.own.asides(ctx)
	errs.add(err)
	for _, a := range asides {
		if s.own.ownsFile(a.original()) {
			errs.add(s.foundFile(a.path(), "the agent's own, set aside"))
		}
	}
	return errs.join()
}

func (s *session) foundFile(path, detail string) error {
	t, err := openTree(path)
	if t == nil {
		return err
	}
	defer t.close()
	item := Item{Kind: kindFile, Object: path, Detail: detail, ref: fileRef{path, t.id}}
	switch {
	case s.kept.holds(t.path), s.again(t):
	case t.mount:
		s.leaveAs(item, "something is mounted on it")
	case t.dir:
		s.leaveAs(item, "it is a directory")
	default:
		s.found(item)
	}
	return nil
}

// again reports whether a file or directory was listed before, under whatever
// path: rules may overlap.
func (s *session) again(t *tree) bool {
	at := place{t.parentID, t.name}
	before := s.listed[at]
	s.listed[at] = true
	return before
}

// place is a name in a directory, however the directory was reached.
type place struct {
	dir  inode
	name string
}

func (s *session) leaveAs(item Item, why string) {
	item.Detail, item.ref = why, nil
	s.leave(item)
}

// removeFile leaves a directory as it is in which a configuration that was set
// aside did not get its name back: the file may be the last one that is loaded.
func removeFile(_ context.Context, s *session, item Item) error {
	ref, ok := item.ref.(fileRef)
	if !ok {
		return fmt.Errorf("identity of type %T", item.ref)
	}
	t, err := ref.open()
	if t == nil {
		return err
	}
	defer t.close()
	if aside := s.stuck[t.parentID]; aside != "" {
		return fmt.Errorf("left as it is, because %s beside it did not get its name back", aside)
	}
	return removing(t.path, unlink(t.fd(), t.name, false))
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
