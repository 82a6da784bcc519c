// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Write is [WriteDir] as a step of a plan: the state of a node in which Dir
// holds Config.
type Write struct {
	Dir    string  // on the caller's side, usually an emptyDir that the agent mounts
	Config *Config // resolved before the plan is built

	// StateDir is where Apply notes what it makes, for Revert. Empty: nothing
	// is noted, and Revert returns an error matching errors.ErrUnsupported. One
	// state directory serves one Dir.
	StateDir string

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
	j := w.job(w.Dir)
	l, err := j.look(ctx)
	if err != nil {
		return nil, hint(w.Dir, err)
	}
	return l.changes(w.Dir, j.want), nil
}

func (w Write) job(dir string) job {
	return job{dir: dir, want: w.Config.Data(), allowEmpty: w.AllowEmpty}
}

// Apply writes the directory.
func (w Write) Apply(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return hint(w.Dir, err)
	}
	if w.Config == nil {
		return hint(w.Dir, errNoConfig)
	}
	if w.StateDir != "" {
		return w.applyRecorded(ctx, nil)
	}
	_, err := w.job(w.Dir).run(ctx)
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
	for _, key := range slices.Sorted(maps.Keys(want)) {
		old, there := l.content[key]
		if !there || old != want[key] {
			lines = append(lines, fmt.Sprintf("write %s/%s", dir, key))
		} else if slices.Contains(l.add, key) {
			lines = append(lines, fmt.Sprintf("link %s/%s", dir, key))
		}
	}
	gone := slices.Clone(l.remove)
	for key := range l.content {
		if _, kept := want[key]; !kept && !slices.Contains(gone, key) {
			gone = append(gone, key)
		}
	}
	slices.Sort(gone)
	for _, key := range gone {
		lines = append(lines, fmt.Sprintf("remove %s/%s", dir, key))
	}
	return lines
}
