// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package reconcile

import (
	"maps"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/bootstrap"
)

const (
	lookEvery = 250 * time.Millisecond
	patience  = 2 * lookEvery // with what changes from look to look

	longest      = time.Minute      // from one repair to the next
	contestAfter = 5                // repairs of the same change in a row
	contestEnds  = 10 * time.Second // without a repair: a later change is unrelated
)

// watched is a step whose places are looked at, or the ledger, which is no step.
type watched struct {
	step      bootstrap.Step // as it was applied last
	isApplied bool
	places    []string

	seen  []appearance // when there was last nothing to do, or nothing could be done; nil: unknown
	now   []appearance // at the last look
	since time.Time    // of the first look that saw a change; zero: none has

	outcome string // of the last repair
	often   int    // how often in a row it was the same
	retries bool   // it has failed, and is tried again
	due     time.Time
}

// look reports whether something is to be done: the places have changed, and then stood still
// from one look to the next, or not for long enough; or a repair is tried again.
func (w *watched) look() bool {
	before, now := w.now, time.Now()
	w.now = nil
	for _, place := range w.places {
		w.now = append(w.now, lookAt(place))
	}
	isDue := !now.Before(w.due)
	switch {
	case w.seen != nil && slices.Equal(w.now, w.seen):
		w.since = time.Time{}
		return w.retries && isDue
	case w.since.IsZero():
		w.since = now
		return false
	}
	return (slices.Equal(w.now, before) || now.Sub(w.since) >= patience) && (isDue || w.retries || w.often <= contestAfter)
}

// attended notes that what the last look saw needs no further attention.
func (w *watched) attended() { w.seen, w.since, w.retries = w.now, time.Time{}, false }

// placesOf lists the paths of a step. What the kernel makes up of values has no times.
func placesOf(result bootstrap.Result) (paths []string) {
	for _, path := range slices.Sorted(maps.Keys(result.Places)) {
		if result.Places[path] != "proc" {
			paths = append(paths, path)
		}
	}
	return paths
}

// appearance describes a file without its content. Each write changes the time of change,
// which no program can set. The times of a directory change with each temporary file in it, and
// count only if its path ends in a slash.
type appearance struct {
	path, err               string
	device, inode           uint64
	mode, uid, gid          uint32
	size, modified, changed int64
}
