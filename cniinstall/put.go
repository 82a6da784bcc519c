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
	h := t.hold()
	j.held = append(j.held, h)
	if err := t.put(); err != nil {
		return err
	}
	after.Seen, after.Quick = t.lookAt(ctx, h)
	return hint(j.book.Complete(record.Entry{Object: t.path, After: after}))
}

// worthSeeing is the size in bytes from which on a plugin is recognised by what
// is seen of it, and not read to be compared.
const worthSeeing = 1 << 20

// hold keeps writers from what is to be looked at in its place. Nil: it will be
// read each time.
func (t *target) hold() *held {
	switch {
	case t.size < worthSeeing:
		return nil
	case t.staged != nil:
		return hold(t.staged.path)
	}
	return hold(t.path)
}

// lookAt is what is seen of a plugin, and its quick hash; nothing where that could
// not be relied on.
func (t *target) lookAt(ctx context.Context, h *held) (seen, quick string) {
	if t.staged != nil {
		quick = t.staged.quick.String()
	} else if h != nil { // it may have been written since it was compared
		now, err := quickOf(ctx, h.file, t.size)
		if want, wantErr := t.quick(ctx); err == nil && wantErr == nil && now == want {
			quick = now
		}
	}
	if seen = h.look(); seen == "" || quick == "" {
		return "", ""
	}
	return seen, quick
}

// quick is the quick hash of what the target shall hold.
func (t *target) quick(ctx context.Context) (string, error) {
	want, err := t.open()
	if err != nil {
		return "", err
	}
	defer want.Close()
	return quickOf(ctx, want, t.size)
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
