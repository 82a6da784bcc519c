// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/slipway-dev/slipway/configresolve"
)

// Writer is [Write] as a step of a plan: the state of a node in which the directory at
// Path contains Config. It is a ledger.Wanter.
type Writer struct {
	Path   string                // on the caller's side, usually an emptyDir that the agent mounts
	Config *configresolve.Config // resolved before the plan is built

	// AllowEmpty lets a Config without keys replace one that has keys. If false,
	// that is [ErrEmpty], and nothing is changed.
	AllowEmpty bool
}

var errNoConfig = errors.New("no configuration given: resolve one first")

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
