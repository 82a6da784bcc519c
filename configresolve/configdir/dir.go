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
}

var errNoConfig = errors.New("no configuration given: resolve one first")

// changes lists the changes of write, with a line for each key if there is a
// configuration to compare with.
func (l *layout) changes(dir string) (lines []string) {
	switch {
	case l.done():
		return nil
	case l.data == "":
		return []string{fmt.Sprintf("write %d keys to %s", len(l.want), dir)}
	}
	lines = l.changedKeys(dir)
	if len(lines) == 0 && !l.same {
		lines = append(lines, "correct the files of "+dir+"/"+l.data)
	}
	for _, name := range l.litter {
		lines = append(lines, "remove leftover "+dir+"/"+name)
	}
	return lines
}

func (l *layout) changedKeys(dir string) (lines []string) {
	for _, key := range slices.Sorted(maps.Keys(l.want)) {
		if l.values[key] != l.want[key] {
			lines = append(lines, "write "+dir+"/"+key)
		} else if _, added := slices.BinarySearch(l.add, key); added {
			lines = append(lines, "link "+dir+"/"+key)
		}
	}
	gone := slices.Clone(l.remove)
	for key, info := range l.held {
		if _, kept := l.want[key]; !kept && info.Mode().IsRegular() {
			gone = append(gone, key)
		}
	}
	slices.Sort(gone)
	for _, key := range slices.Compact(gone) {
		lines = append(lines, "remove "+dir+"/"+key)
	}
	return lines
}
