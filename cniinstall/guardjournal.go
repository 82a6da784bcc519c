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
)

// ended says whether the installation is another owner's by now, or is being
// taken back: an uninstall drops each entry as it goes.
func (r *guarding) ended() error {
	j := &job{Install: r.Install}
	if err := j.openBook(); err != nil || j.book == nil {
		return err
	}
	if owner, generation := j.book.Owner(); generation > 0 && owner != r.Install.Owner {
		return fmt.Errorf("%w: last was %s (generation %d), this is %s", ErrNotOwner, owner, generation, r.Install.Owner)
	}
	for path := range r.known {
		if _, recorded := j.book.Lookup(path); !recorded {
			return fmt.Errorf("%w: the record of %s is gone", ErrUninstalled, path)
		}
	}
	return nil
}

// mayRepair is an error if something differs that is not to be repaired.
func (r *guarding) mayRepair(ctx context.Context, j *job) error {
	if j.book == nil {
		return nil
	}
	for _, t := range j.pending(attributes, content) {
		if err := r.isDamage(ctx, j, t); err != nil {
			return err
		}
	}
	return nil
}

// isDamage: what differs from ours because this owner has installed something
// else since is none.
func (r *guarding) isDamage(ctx context.Context, j *job, t *target) error {
	e, recorded := j.book.Lookup(t.path)
	sum, seen := r.known[t.path]
	switch {
	case r.known == nil && !recorded:
		if t.plugin != "" && j.policyOf(t.plugin) == IfMissing {
			return nil // another may have been there before
		}
		return fmt.Errorf("%w: %s differs, and %s has no record of it", ErrUninstalled, t.path, j.StateDir)
	case t.plugin == "" && !isFixed(j.Config):
		return nil // it may be another each time
	case r.known != nil && !seen:
		return nil
	case !seen:
		var err error
		if sum, err = t.hash(ctx); err != nil {
			return err
		}
	}
	if e.Done && e.After.SHA256 != sum {
		return fmt.Errorf("%w: as %s, with other content of %s", ErrNotOwner, j.Owner, t.path)
	}
	return nil
}

// isFixed: each rendering is the same, whatever else is on the node.
func isFixed(c Config) bool {
	switch c.(type) {
	case Whole, Agent:
		return true
	}
	return false
}

// remember notes what the record says of what is guarded.
func (r *guarding) remember(j *job) {
	if r.known == nil {
		r.known = map[string]string{}
	}
	if j.book == nil {
		return
	}
	for _, t := range j.targets() {
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
		if _, err := io.CopyN(sum, src, piece); errors.Is(err, io.EOF) {
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
