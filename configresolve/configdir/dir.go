// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/internal/durable"
)

// Writer is [Write] as a step of a plan: the state of a node in which the directory at
// Path contains Config.
type Writer struct {
	Path   string                // on the caller's side, usually an emptyDir that the agent mounts
	Config *configresolve.Config // resolved before the plan is built

	// AllowEmpty lets a Config without keys replace one that has keys. If false,
	// that is [ErrEmpty], and nothing is changed.
	AllowEmpty bool
}

// Kinds lists the kinds of entries that Apply makes in the context's journal.
func (Writer) Kinds() []string { return Handler{}.Kinds() }

var errNoConfig = errors.New("no configuration given: resolve one first")

// Check lists the keys that Apply would write and remove, and the leftovers that it
// would remove.
func (d Writer) Check(ctx context.Context) ([]string, error) {
	if d.Config == nil {
		return nil, hint(d.Path, errNoConfig)
	}
	j := d.job(ctx)
	l, err := j.look(ctx)
	if err != nil {
		return nil, hint(d.Path, err)
	}
	shared, err := j.journal.CheckWishes(ctx, j.wish(l.done()))
	return append(l.changes(d.Path, j.want), shared...), err
}

func (d Writer) job(ctx context.Context) job {
	return job{dir: d.Path, want: d.Config.Data(), allowEmpty: d.AllowEmpty, journal: journal.From(ctx)}
}

// CheckPermission returns an error if this process is not permitted to write the directory.
func (d Writer) CheckPermission(context.Context) error {
	_, err := durable.Writable(d.Path)
	return hint(d.Path, err)
}

// Apply writes the directory.
func (d Writer) Apply(ctx context.Context) error {
	if d.Config == nil {
		return hint(d.Path, errNoConfig)
	}
	j := d.job(ctx)
	if _, err := j.run(ctx); err != nil {
		return err
	}
	return j.journal.Wish(ctx, j.wish(true))
}

// Advise warns if users other than root and the caller can change the agent's
// configuration: the directory, or one on the path to it, belongs to another user,
// or is writable for all users, as an emptyDir is.
func (d Writer) Advise(context.Context) ([]string, error) {
	switch at, err := durable.OpenVetted(nil, d.Path); {
	case err == nil:
		return nil, at.Close()
	case errors.Is(err, durable.ErrShared):
		return []string{fmt.Sprintf("users other than root may change the agent's configuration in %s: %v; in a pod's emptyDir only the pod's own containers can", d.Path, err)}, nil
	}
	return nil, nil // it will be made, or Check reports another error
}

// changes lists the changes of write, with a line for each key if there is a
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
		lines = append(lines, "correct the files of "+dir+"/"+l.data)
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
