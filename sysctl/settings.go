// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// Settings is an action that sets kernel values and keeps no file: they last
// until the next boot.
type Settings struct {
	// Values are set in this order; globs stand for the keys there are then.
	Values []Setting
	// Kernel is where they are set. Zero: the calling thread's.
	Kernel Kernel
	// StateDir is where previous values are noted before they change. Empty:
	// nowhere, and Revert can do nothing.
	StateDir string
	// Name tells several Settings with one StateDir apart. Zero: "values".
	Name string
}

func (s Settings) open() (*journal, error) {
	if s.Name == "" {
		s.Name = "values"
	}
	if s.Name != filepath.Base(s.Name) {
		return nil, fmt.Errorf("name %q of settings is not that of a file", s.Name)
	}
	return s.Kernel.openJournal(s.StateDir, s.Name)
}

// Check lists the values that Apply would set (see [Kernel.Diff]).
func (s Settings) Check(ctx context.Context) ([]string, error) {
	if _, err := s.open(); err != nil {
		return nil, err
	}
	changes, err := s.Kernel.Diff(s.Values...)
	return lines(changes), errors.Join(err, ctx.Err())
}

// Apply sets the values that differ and reads them back (see [Kernel.Set]),
// noting previous ones first, with those of the keys that the kernel changes
// along with them.
func (s Settings) Apply(ctx context.Context) error {
	j, err := s.open()
	if err = errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	return s.Kernel.converge(ctx, assignments(s.Values), j)
}

// Revert puts back the values that Apply changed in this boot and that are
// still as it left them; the others stay, and the error names them. Without
// StateDir the error matches [errors.ErrUnsupported].
func (s Settings) Revert(ctx context.Context) error {
	j, err := s.recorded()
	if err = errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	return s.Kernel.undoValues(ctx, j.book, j.now)
}

// CheckRevert lists what Revert would do.
func (s Settings) CheckRevert(ctx context.Context) ([]string, error) {
	j, err := s.recorded()
	if err != nil {
		return nil, err
	}
	changes, err := memoLines(s.Kernel.judge(j.book, j.now))
	return changes, errors.Join(err, ctx.Err())
}

func (s Settings) recorded() (*journal, error) {
	if s.StateDir == "" {
		return nil, errNoState
	}
	return s.open()
}

func lines(changes []Change) []string {
	var all []string
	for _, c := range changes {
		all = append(all, c.String())
	}
	return all
}

func memoLines(memos []memo) ([]string, error) {
	var all []string
	var errs []error
	for _, m := range memos {
		errs = append(errs, m.err)
		if line := m.change(); line != "" {
			all = append(all, line)
		}
	}
	return all, errors.Join(errs...)
}
