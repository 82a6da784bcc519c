// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"iter"
	"slices"
)

// order returns entries in the order in which they are undone: newest first, but no
// entry before one that needs it.
func order(entries []Entry) []Entry {
	newest := slices.Clone(entries)
	slices.Reverse(newest)
	needed := neededBy(newest)
	waits, done := make([]int, len(newest)), make([]bool, len(newest)) // for how many others; whether it is sorted
	for i := range newest {
		for k := range needed(i) {
			waits[k]++
		}
	}
	sorted := make([]Entry, 0, len(newest))
	for i := 0; len(sorted) < len(newest); {
		if i == len(newest) { // all the rest need each other
			i = slices.Index(done, false)
		} else if done[i] || waits[i] > 0 {
			i++
			continue
		}
		sorted, done[i] = append(sorted, newest[i]), true
		next := i + 1
		for k := range needed(i) {
			if waits[k]--; waits[k] == 0 && !done[k] { // it may have been passed over
				next = min(next, k)
			}
		}
		i = next
	}
	return sorted
}

// neededBy returns, for each of entries, the others that it needs.
func neededBy(entries []Entry) func(i int) iter.Seq[int] {
	at := map[string][]int{} // where an object is
	for i, e := range entries {
		at[e.Object] = append(at[e.Object], i)
	}
	return func(i int) iter.Seq[int] {
		return func(yield func(int) bool) {
			for _, object := range slices.Compact(slices.Sorted(slices.Values(entries[i].Needs))) {
				for _, k := range at[object] {
					if k != i && !yield(k) {
						return
					}
				}
			}
		}
	}
}
