// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"errors"
	"slices"

	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// MissingError is an error of a check that needs a file at one of several paths of the
// host, and finds none. After steps that would change something it is still a failure,
// unless one of them could make that file: an action that declares that it makes something
// there ([Placed]), or one that declares nothing, neither places nor the kinds it records
// ([Recorder]).
type MissingError interface {
	error

	// MissingAt lists the paths.
	MissingAt() []string
}

// CertainError is an error of a check that no step of the plan could mend, such as a
// conflict with another agent on the node. It is a failure even after steps that would
// change something.
type CertainError interface {
	error

	// Certain does nothing; it only marks the error.
	Certain()
}

// hopeless reports whether err, of the check of s, is certain, or misses what no step before
// s could bring. It is to be asked where the check was. While a gate is not open, others may
// bring it.
func (w *walk) hopeless(s *Step, err error) bool {
	var certain CertainError
	if errors.As(err, &certain) {
		return true
	}
	if w.waits {
		return false
	}
	before := w.pendingBefore(s, make(map[string]bool))
	return anyMissing(err, func(m MissingError) bool {
		return !slices.ContainsFunc(before, func(s *Step) bool { return s.couldBring(m.MissingAt()) })
	})
}

// pendingBefore lists the steps that s needs, by their After too, and that would, or
// might, change something.
func (w *walk) pendingBefore(s *Step, seen map[string]bool) (steps []*Step) {
	for _, name := range s.After {
		before := w.plan.Step(name)
		if before == nil || seen[name] {
			continue
		}
		seen[name] = true
		if slices.ContainsFunc(w.report.Results, func(r Result) bool {
			return r.Step == name && (r.Status == WouldChange || r.Status == Unknown)
		}) {
			steps = append(steps, before)
		}
		steps = append(steps, w.pendingBefore(before, seen)...)
	}
	return steps
}

// couldBring reports whether the step may make something at one of the paths, or above or
// below it.
func (s *Step) couldBring(paths []string) bool {
	placed, ok := as[Placed](s.Action)
	if !ok {
		r, records := as[Recorder](s.Action)
		return !records || len(r.Kinds()) == 0
	}
	for place := range placed.Places() {
		place = resolved(place)
		if slices.ContainsFunc(paths, func(path string) bool {
			path = resolved(path)
			return mountinfo.Below(path, place) || mountinfo.Below(place, path)
		}) {
			return true
		}
	}
	return false
}

// resolved is path with its symbolic links resolved, or path itself if they cannot be.
func resolved(path string) string {
	if real, err := mountinfo.Resolve(path); err == nil {
		return real
	}
	return path
}

// anyMissing reports whether is holds for one of the errors in err's tree that miss
// something.
func anyMissing(err error, is func(MissingError) bool) bool {
	if m, ok := err.(MissingError); ok {
		return is(m)
	}
	switch wrapper := err.(type) {
	case interface{ Unwrap() error }:
		return anyMissing(wrapper.Unwrap(), is)
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(wrapper.Unwrap(), func(err error) bool { return anyMissing(err, is) })
	}
	return false
}
