// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/record"
)

func isVisible(name string) bool { return !strings.HasPrefix(name, ".") }

func isConfName(name string) bool {
	return isVisible(name) && slices.Contains(confSuffixes, filepath.Ext(name))
}

// decide says whether what the record holds ends the guard. At the first look
// it has to hold what would be repaired: the guard installs nothing.
func (r *guarding) decide(ctx context.Context, j *job) error {
	if j.book == nil {
		return nil
	}
	if err := r.ended(j.book); err != nil {
		return err
	}
	if r.known != nil {
		return nil
	}
	for _, t := range j.pending(attributes, content) {
		if err := r.recorded(ctx, j, t); err != nil {
			return err
		}
	}
	return nil
}

// recorded says whether a target that differs was installed as it is to be.
// One that is installed only if it is missing may have been there before.
func (r *guarding) recorded(ctx context.Context, j *job, t *target) error {
	e, recorded := j.book.Lookup(t.path)
	if !recorded && t.plugin != "" && j.policyOf(t.plugin) == IfMissing {
		return nil
	}
	if !recorded {
		return fmt.Errorf("%w: %s differs, and %s has no record of it", ErrUninstalled, t.path, j.StateDir)
	}
	sum, err := t.hash(ctx)
	if err == nil && e.Done && e.After.SHA256 != sum {
		err = fmt.Errorf("%w: as %s, with other content of %s", ErrNotOwner, j.Owner, t.path)
	}
	return err
}

// ended compares the record with what it was when the guard looked last.
func (r *guarding) ended(book *record.Book) error {
	if book == nil {
		return nil
	}
	if owner, generation := book.Owner(); generation > 0 && owner != r.Install.Owner {
		return fmt.Errorf("%w: last was %s (generation %d), this is %s", ErrNotOwner, owner, generation, r.Install.Owner)
	}
	for path, sum := range r.known {
		switch e, recorded := book.Lookup(path); {
		case !recorded:
			return fmt.Errorf("%w: the record of %s is gone", ErrUninstalled, path)
		case e.Done && e.After.SHA256 != sum:
			return fmt.Errorf("%w: as %s, with other content of %s", ErrNotOwner, r.Install.Owner, path)
		}
	}
	return nil
}

// remember notes what the record says of what is guarded.
func (r *guarding) remember(j *job) {
	if r.known == nil {
		r.known = map[string]string{}
	}
	for _, t := range j.targets() {
		if j.book == nil {
			return
		}
		if e, recorded := j.book.Lookup(t.path); recorded && e.Done {
			r.known[t.path] = e.After.SHA256
		}
	}
}

// hash is the SHA-256 of the target's content, in hex.
func (t *target) hash(ctx context.Context) (string, error) {
	src, err := t.open()
	if err != nil {
		return "", err
	}
	defer src.Close()
	sum := sha256.New()
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		if _, err := io.CopyN(sum, src, bufferSize); errors.Is(err, io.EOF) {
			return hex.EncodeToString(sum.Sum(nil)), nil
		} else if err != nil {
			return "", err
		}
	}
}

// found describes what is to be repaired, so that it is known again; of large
// files only the size.
func (j *job) found() string {
	sum := sha256.New()
	fmt.Fprintln(sum, j.changes())
	for _, t := range j.pending(content) {
		info, err := os.Lstat(t.path)
		if err != nil {
			fmt.Fprintln(sum, t.path, "missing")
			continue
		}
		fmt.Fprintln(sum, t.path, info.Mode(), info.Size())
		if info.Mode().IsRegular() && info.Size() <= 1<<20 {
			if f, err := openThere(t.path); err == nil {
				io.Copy(sum, f)
				f.Close()
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}
