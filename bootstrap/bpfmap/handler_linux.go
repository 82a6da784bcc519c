// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpfmap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/remedy"
)

func lookAtPin(e journal.Entry) (journal.Undo, error) {
	there, err := inPlace(e)
	if err != nil || !there {
		return journal.Undo{}, err
	}
	u := journal.Undo{
		Change: "remove the directory " + e.Object, Removes: []string{e.Object},
		Run: func(context.Context) error { return remove(e) },
	}
	if e.Kind == kindPin {
		u.Change = "remove the pinned map " + e.Object
		u.Removes = append(u.Removes, nextPath(e.Object))
	}
	return u, nil
}

// inPlace reports whether the object of e exists as it was left.
func inPlace(e journal.Entry) (bool, error) {
	dir, err := durable.OpenDir(filepath.Dir(e.Object))
	if err == nil {
		defer dir.Close()
		err = onBPFFS(dir, filepath.Dir(e.Object))
		if err != nil { // unmounted, and the pins with it
			return false, nil
		}
		err = left(dir, e)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func left(dir *durable.Dir, e journal.Entry) error {
	name := filepath.Base(e.Object)
	if e.Kind == kindDir {
		info, err := dir.Lstat(name)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("the directory %s is %w: it is %v", e.Object, journal.ErrChanged, info.Mode())
		}
		return err
	}
	m, err := load(dir, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return err
	case errors.Is(err, errNoMap):
		return fmt.Errorf("the pin %s is %w: %w", e.Object, journal.ErrChanged, err)
	case err != nil:
		return fmt.Errorf("the pin %s: %w", e.Object, remedy.File(err))
	}
	defer m.Close()
	now, err := stateOf(m)
	if err == nil && !isLeft(e, now) {
		err = fmt.Errorf("the pin %s is %w: it is another map's", e.Object, journal.ErrChanged)
	}
	return err
}

// isLeft reports whether now is the map that the step, or another agent that wanted it
// too, has left.
func isLeft(e journal.Entry, now journal.State) bool {
	states := e.LeftAs()
	if e.Was != nil {
		states = append(states, *e.Was)
	}
	return slices.ContainsFunc(states, func(s journal.State) bool { return s.Same(now) && s.File == now.File })
}

func remove(e journal.Entry) error {
	there, err := inPlace(e)
	if err != nil || !there {
		return err
	}
	dir, err := durable.OpenDir(filepath.Dir(e.Object))
	if err != nil {
		return err
	}
	defer dir.Close()
	name := filepath.Base(e.Object)
	if e.Kind == kindPin { // the leftover of a replacement goes too
		err = dir.Remove(next + name)
	}
	err = errors.Join(err, dir.Remove(name))
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("the directory %s is left: it holds pins of others", e.Object)
	}
	return remedy.File(err)
}
