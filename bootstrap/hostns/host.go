// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// Host is the node that a program changes, whether the program runs directly on it
// or in one of its containers. The zero value is for a process that runs directly
// on the host.
type Host struct {
	// Proc is where the host's /proc is mounted, such as /hostproc, so that pid 1
	// there is the host's. "/proc" stands for the pid 1 that this process sees. If
	// Proc is empty, no namespace is entered.
	Proc string

	// Here says, if Proc is empty, that changes are meant for the container that the
	// process is in: [Host.Files] and [Host.Mounts] then refuse nothing.
	Here bool

	// Remedy is added to errors that match [ErrNotHost]. It should say how to set
	// Proc and Here, for example by which flags of the program.
	Remedy string
}

// Check returns an error unless Proc is empty or shows a host (see [CheckProc]).
func (h Host) Check() error {
	if h.Proc == "" {
		return nil
	}
	err := CheckProc(h.Proc)
	if errors.Is(err, ErrNotHost) && filepath.Clean(h.Proc) == "/proc" {
		return nil
	}
	return err
}

// Do runs f in the host's namespaces (see [Do]). If Proc is empty, it just calls f.
func (h Host) Do(ctx context.Context, ns Namespace, f func(context.Context) error) error {
	if h.Proc == "" {
		return f(ctx)
	}
	return Do(ctx, h.init(), ns, f)
}

// On returns a function that runs its argument in the host's namespaces, as
// journal.In needs it.
func (h Host) On(ns Namespace) func(context.Context, func(context.Context) error) error {
	return func(ctx context.Context, f func(context.Context) error) error { return h.Do(ctx, ns, f) }
}

// Lock returns a function that calls lock, such as the Lock method of a flock.File,
// in the host's mount namespace.
func (h Host) Lock(lock func(context.Context) (unlock func() error, err error)) func(context.Context) (unlock func() error, err error) {
	return func(ctx context.Context) (unlock func() error, err error) {
		err = h.Do(ctx, Mount, func(ctx context.Context) (err error) {
			unlock, err = lock(ctx)
			return err
		})
		return unlock, err
	}
}

// In returns an action that runs a in the host's namespaces (see [In]). If Proc is
// empty, it returns a itself.
func (h Host) In(ns Namespace, a Action) Action {
	if h.Proc == "" {
		return a
	}
	return In(h.init(), ns, a)
}

// Files is In for an action that makes files at paths. If the files would exist
// only in the container (see [CheckFile]), the action fails with an error that says
// so.
func (h Host) Files(ns Namespace, a Action, paths ...string) Action {
	var errs []error
	for _, path := range paths {
		errs = append(errs, h.CheckFile(path))
	}
	return orRefused(h.In(ns, a), errors.Join(errs...))
}

// Mounts is In for an action that mounts a file system of type fstype on one of
// paths. If only the container would see a mount there (see [CheckMount]), the
// action fails with an error that says so.
func (h Host) Mounts(ns Namespace, a Action, fstype string, paths ...string) Action {
	var errs []error
	for _, path := range paths {
		errs = append(errs, h.refusal(CheckMount(path, fstype)))
	}
	return orRefused(h.In(ns, a), errors.Join(errs...))
}

// CheckFile returns the error with which the action of [Host.Files] would fail for
// path.
func (h Host) CheckFile(path string) error { return h.refusal(CheckFile(path)) }

// refusal returns err, unless the change is made on the host or is meant for the
// container.
func (h Host) refusal(err error) error {
	switch {
	case err == nil, h.Proc != "", h.Here:
		return nil
	case h.Remedy == "":
		return err
	}
	return fmt.Errorf("%w (%s)", err, h.Remedy)
}

func (h Host) init() string { return filepath.Join(h.Proc, "1") }

// orRefused returns a or, if err is not nil, an action that fails with err.
func orRefused(a Action, err error) Action {
	if err == nil {
		return a
	}
	return refused{err}
}

type refused struct{ err error }

func (r refused) Check(context.Context) ([]string, error) { return nil, r.err }
func (r refused) Apply(context.Context) error             { return r.err }
