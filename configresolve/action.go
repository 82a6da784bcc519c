// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// Write is [WriteDir] as a step of a plan: the state of a node in which Dir
// holds Config.
type Write struct {
	Dir    string  // on the caller's side, usually an emptyDir that the agent mounts
	Config *Config // resolved before the plan is built

	// Journal is where Apply records what it makes, for Revert. Nil: nothing is
	// recorded, and Revert returns an error that matches [errors.ErrUnsupported].
	Journal *journal.Journal

	// AllowEmpty lets a Config without keys replace one that has some. Where it
	// is false that is an error, ErrEmpty, and nothing is changed.
	AllowEmpty bool
}

var errNoConfig = errors.New("no configuration given: resolve one first")

// Check lists the keys that Apply would write and remove, and the leftovers
// that it would clear away.
func (w Write) Check(ctx context.Context) ([]string, error) {
	if w.Config == nil {
		return nil, hint(w.Dir, errNoConfig)
	}
	j := w.job()
	l, err := j.look(ctx)
	if err != nil {
		return nil, hint(w.Dir, err)
	}
	return l.changes(w.Dir, j.want), nil
}

func (w Write) job() job {
	return job{dir: w.Dir, want: w.Config.Data(), allowEmpty: w.AllowEmpty, journal: w.Journal}
}

// Apply writes the directory.
func (w Write) Apply(ctx context.Context) error {
	if w.Config == nil {
		return hint(w.Dir, errNoConfig)
	}
	_, err := w.job().run(ctx)
	return err
}

// changes says what write would do, a line for each key once there is a
// configuration to compare with.
func (l *layout) changes(dir string, want map[string]string) []string {
	if l.done() {
		return nil
	}
	if l.data == "" {
		return []string{fmt.Sprintf("write %d keys to %s", len(want), dir)}
	}
	lines := l.changedKeys(dir, want)
	if len(lines) == 0 && !l.same {
		lines = append(lines, "put right the files of "+dir+"/"+l.data)
	}
	for _, name := range l.litter {
		lines = append(lines, "remove leftover "+dir+"/"+name)
	}
	return lines
}

func (l *layout) changedKeys(dir string, want map[string]string) []string {
	var lines []string
	add, gone := map[string]bool{}, map[string]bool{}
	for _, key := range l.add {
		add[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if !l.right[key] {
			lines = append(lines, fmt.Sprintf("write %s/%s", dir, key))
		} else if add[key] {
			lines = append(lines, fmt.Sprintf("link %s/%s", dir, key))
		}
	}
	for _, key := range l.remove {
		gone[key] = true
	}
	for key, info := range l.held {
		if _, kept := want[key]; !kept && info.Mode().IsRegular() {
			gone[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(gone)) {
		lines = append(lines, fmt.Sprintf("remove %s/%s", dir, key))
	}
	return lines
}
