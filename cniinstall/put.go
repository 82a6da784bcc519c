// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/record"
)

const dirMode = 0o755

// put does what the target needs, between two notes in the record.
func (j *job) put(ctx context.Context, t *target) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if j.book == nil {
		return t.put()
	}
	after, err := t.recorded(ctx)
	if err != nil {
		return err
	}
	if err := j.book.BeginFile(t.path, after); err != nil {
		return hint(err)
	}
	if err := t.put(); err != nil {
		return err
	}
	return hint(j.book.Complete(record.Entry{Object: t.path, After: after}))
}

// recorded is how the target will be left.
func (t *target) recorded(ctx context.Context) (record.State, error) {
	if t.staged != nil {
		return t.after(t.staged.sum), nil
	}
	now, err := record.Snapshot(t.path)
	return t.after(now.SHA256), errors.Join(err, ctx.Err())
}

func (t *target) put() error {
	if t.staged != nil {
		return t.staged.publish()
	}
	f, err := openThere(t.path)
	if err != nil {
		return hint(err)
	}
	defer f.Close()
	if err := setAttributes(f, t); err != nil {
		return hint(err)
	}
	return f.Sync()
}

// makeDir makes one directory whose parent is there.
func (j *job) makeDir(dir string) error {
	if j.book != nil {
		return j.book.MkdirAll(dir, dirMode)
	}
	if err := os.Mkdir(dir, dirMode); errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	if err := os.Chmod(dir, dirMode); err != nil { // the umask may have taken bits away
		return err
	}
	return durable.SyncDir(filepath.Dir(dir))
}

// removeDirs takes back the directories that a failed run made for nothing.
func (j *job) removeDirs() error {
	for _, t := range j.targets() {
		t.staged.discard()
	}
	var errs []error
	for _, dir := range slices.Backward(j.dirs) {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue // somebody else has put something there: it stays, and recorded
		}
		if j.book == nil {
			continue
		}
		if _, begun := j.book.Lookup(dir); begun {
			errs = append(errs, j.book.Forget(dir))
		}
	}
	return errors.Join(errs...)
}
