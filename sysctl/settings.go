// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"errors"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// Settings is an action that sets kernel values but writes no file: they last until
// the next boot.
type Settings struct {
	// Values are set in this order; globs stand for the keys that exist at that
	// time.
	Values []Setting
	// Kernel is the kernel whose values are set. The zero value is the calling
	// thread's.
	Kernel Kernel
}

// Check lists the values that Apply would set (see [Kernel.Diff]).
func (s Settings) Check(ctx context.Context) ([]string, error) {
	changes, err := s.Kernel.Diff(s.Values...)
	shared, conflict := s.Kernel.checkWishes(ctx, assignments(s.Values), changes)
	return append(lines(changes), shared...), errors.Join(err, conflict, ctx.Err())
}

// CheckPermission returns an error if this process could not write a value that differs.
func (s Settings) CheckPermission(context.Context) error { return s.Kernel.permission(s.Values) }

// Apply sets the values that differ and reads them back (see [Kernel.Set]), after
// recording the previous ones, including those that the kernel changes along with
// them.
func (s Settings) Apply(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	as := assignments(s.Values)
	if err := s.Kernel.converge(ctx, as, newRecorder(journal.From(ctx))); err != nil {
		return err
	}
	return s.Kernel.wish(ctx, as)
}

// Kinds lists the kinds of entries that Apply makes in the context's journal.
func (Settings) Kinds() []string { return Handler{}.Kinds() }

// Namespaces lists the host namespaces that a plan enters: none unless Kernel is
// the running one.
func (s Settings) Namespaces() []string { return s.Kernel.namespaces() }

// Places lists /proc/sys/net if there are values of a network namespace: in a
// container a plan refuses to set them, unless it enters the host's namespace or
// the namespace is known to be the host's (hostns.CheckFile).
func (s Settings) Places() map[string]string { return s.Kernel.places(s.Values) }

// Validate returns an error for each invalid key, independently of the node.
func (s Settings) Validate() error { return validate(s.Values) }

func validate(settings []Setting) error {
	var errs []error
	for _, s := range settings {
		_, err := s.Key.path()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func lines(changes []Change) []string {
	var all []string
	for _, c := range changes {
		all = append(all, c.String())
	}
	return all
}
