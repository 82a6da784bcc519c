// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/remedy"
)

// Recorded is an action that undoes what every [DropIn] and [Settings] has
// recorded in one state directory, whatever their names, files and settings
// were. It has nothing to apply.
type Recorded struct {
	// StateDir is where they recorded it. Empty: Revert can do nothing.
	StateDir string
	// Kernel is where values are put back. Zero: the calling thread's.
	Kernel Kernel
}

// Check names no changes.
func (Recorded) Check(ctx context.Context) ([]string, error) { return nil, ctx.Err() }

// Apply does nothing.
func (Recorded) Apply(ctx context.Context) error { return ctx.Err() }

// Revert removes the files, or brings back what stood there, then puts the
// values back, the newest first: where two actions set one key, the one whose
// value it has is undone before the other, and otherwise the one that recorded
// something last. What is no longer as it was left stays, and the error names
// it. If a record cannot be read, nothing is undone. Without StateDir the error
// matches [errors.ErrUnsupported].
func (r Recorded) Revert(ctx context.Context) error {
	js, err := r.open()
	if err = errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	forgetFiles, err := undoFiles(ctx, js)
	errs := []error{err}
	r.Kernel.newestFirst(js, func(j *journal) {
		errs = append(errs, r.Kernel.undoValues(ctx, j.book, j.now))
	})
	return errors.Join(append(errs, forgetFiles())...)
}

// CheckRevert lists what Revert would do.
func (r Recorded) CheckRevert(ctx context.Context) ([]string, error) {
	js, err := r.open()
	if err != nil {
		return nil, err
	}
	changes, err := fileLines(js)
	errs := []error{err, ctx.Err()}
	imagined := imagined{Files: r.Kernel.files(), values: map[string]string{}}
	k := Kernel{Files: imagined}
	k.newestFirst(js, func(j *journal) {
		memos := k.judge(j.book, j.now)
		more, err := memoLines(memos)
		changes, errs = append(changes, more...), append(errs, err)
		for _, m := range memos {
			if m.err == nil && m.verdict == restore {
				imagined.values[m.path] = m.Before.Value
			}
		}
	})
	return changes, errors.Join(errs...)
}

// imagined are a kernel's values, some of them as they are going to be.
type imagined struct {
	Files
	values map[string]string
}

func (i imagined) ReadFile(name string) ([]byte, error) {
	if value, ok := i.values[name]; ok {
		return []byte(value), nil
	}
	return i.Files.ReadFile(name)
}

// open opens every book of this package, the one that was written last first.
func (r Recorded) open() ([]*journal, error) {
	switch {
	case r.StateDir == "":
		return nil, errNoState
	case !filepath.IsAbs(r.StateDir):
		return nil, fmt.Errorf("state directory %q is not an absolute path", r.StateDir)
	}
	entries, err := os.ReadDir(r.StateDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the records: %w", remedy.File(err))
	}
	var js []*journal
	var errs []error
	written := map[*journal]time.Time{}
	for _, e := range entries {
		name, ours := strings.CutPrefix(e.Name(), bookPrefix)
		name, isBook := strings.CutSuffix(name, ".json")
		if !ours || !isBook {
			continue
		}
		info, err := e.Info()
		j, openErr := r.Kernel.openJournal(r.StateDir, name)
		if err = errors.Join(err, openErr); err != nil {
			errs = append(errs, err)
			continue
		}
		js, written[j] = append(js, j), info.ModTime()
	}
	slices.SortStableFunc(js, func(a, b *journal) int { return written[b].Compare(written[a]) })
	return js, errors.Join(errs...)
}

// newestFirst visits books so that of two with one key the one that left it as
// it is comes first; otherwise in their order. Values may change between visits.
func (k Kernel) newestFirst(js []*journal, visit func(*journal)) {
	for rest := slices.Clone(js); len(rest) > 0; {
		first, least := 0, -1
		for i, j := range rest {
			if n := k.overridden(j, rest); least < 0 || n < least {
				first, least = i, n
			}
		}
		visit(rest[first])
		rest = slices.Delete(rest, first, first+1)
	}
}

// overridden counts the values of j's keys that are neither as j found nor as
// it left them, but as one of others did.
func (k Kernel) overridden(j *journal, others []*journal) int {
	n := 0
	for _, m := range k.judge(j.book, j.now) {
		if m.err != nil || m.left() || sameValue(m.now, m.Before.Value) {
			continue
		}
		if slices.ContainsFunc(others, func(o *journal) bool {
			e := o.lookup(Key(m.Object))
			return o != j && e != nil && sameValue(m.now, e.After.Value)
		}) {
			n++
		}
	}
	return n
}
