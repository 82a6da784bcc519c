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

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/input"
)

// verify returns an error if the guarded installation is no longer this owner's. It
// may be a reason for the guard to end, which takes precedence over other errors:
// the node has another owner by now, or the installation was undone.
func (r *guarding) verify(ctx context.Context) error {
	err := journal.From(ctx).Verify(ctx)
	switch gone := r.gone(ctx); {
	case gone != nil && (err == nil || ends(gone)):
		return gone
	case errors.Is(err, journal.ErrRevoked) && !errors.Is(err, journal.ErrNotOwner):
		return fmt.Errorf("%w: %w", ErrUninstalled, err)
	}
	return err
}

// gone returns an error if the journal no longer has the guarded files.
func (r *guarding) gone(ctx context.Context) error {
	if journal.From(ctx) == nil {
		return nil
	}
	known, err := recorded(ctx, journal.From(ctx))
	if err != nil {
		return err
	}
	for path := range r.known {
		if _, there := known[path]; !there {
			return fmt.Errorf("%w: %s is no longer recorded", ErrUninstalled, path)
		}
	}
	return nil
}

// mayRepair returns an error if a file differs that must not be repaired.
func (r *guarding) mayRepair(ctx context.Context, j *job) error {
	if j.journal == nil {
		return nil
	}
	for _, t := range j.pending(attributes, content) {
		if err := r.isDamage(ctx, j, t); err != nil {
			return err
		}
	}
	return nil
}

// isDamage returns an error if t must not be repaired: it differs because the same
// owner has installed other content since, or it was never recorded.
func (r *guarding) isDamage(ctx context.Context, j *job, t *target) error {
	e, recorded := j.known[t.path]
	sum, seen := r.known[t.path]
	switch {
	case r.known == nil && !recorded:
		if t.plugin != "" && j.policyOf(t.plugin) == IfMissing {
			return nil // another file may have been there before
		}
		return fmt.Errorf("%w: %s differs, and is not recorded in %s", ErrUninstalled, t.path, j.journal.Dir())
	case t.plugin == "" && !isFixed(j.Config):
		return nil // its content may differ each time
	case r.known != nil && !seen:
		return nil
	case sum == "":
		var err error
		if sum, err = t.hash(ctx); err != nil {
			return err
		}
	}
	if e.Done && e.After.SHA256 != sum {
		return fmt.Errorf("%w: %s was installed with other content since", journal.ErrRevoked, t.path)
	}
	return nil
}

// isFixed reports whether c always renders the same, independently of the node.
func isFixed(c Config) bool {
	switch c.(type) {
	case Whole, Agent:
		return true
	}
	return false
}

// remember takes over the journal's entries of the guarded files.
func (r *guarding) remember(j *job, known map[string]journal.Entry) {
	if r.known == nil {
		r.known = map[string]string{}
	}
	for _, t := range j.targets() {
		switch e, there := known[t.path]; {
		case there && e.Done:
			r.known[t.path], r.one = e.After.SHA256, t.path
		case there && r.known[t.path] == "":
			r.known[t.path] = "" // begun by another process, or by a killed run
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
	_, err = io.Copy(sum, input.WithContext(ctx, src))
	return hex.EncodeToString(sum.Sum(nil)), err
}

// found describes the state to repair, so that it can be recognised again; large
// files count only by size.
func (j *job) found() string {
	sum := sha256.New()
	fmt.Fprintln(sum, j.changes())
	for _, t := range j.pending(content) {
		d := j.dirOf(t)
		if d == nil {
			fmt.Fprintln(sum, t.path, "missing")
			continue
		}
		info, err := d.Lstat(t.name())
		if err != nil {
			fmt.Fprintln(sum, t.path, "missing")
			continue
		}
		fmt.Fprintln(sum, t.path, info.Mode(), info.Size())
		if raw, err := d.ReadFile(t.name(), input.MaxNetwork); err == nil {
			sum.Write(raw)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}
