// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package iptables

import "strings"

// ParseSave parses iptables-save's output, and returns the input that makes iptables-restore
// delete everything owned in it.
func ParseSave(text string, owned func(chain string) bool) (deletions string) {
	set := newRuleset(owned, "ip")
	for line := range strings.Lines(text) {
		set.line(strings.TrimSuffix(line, "\n"))
	}
	var all []Object
	for _, rule := range set.Jumps {
		all = append(all, rule)
	}
	for _, chain := range set.SortedChains() {
		all = append(all, chain)
	}
	return set.deletions(all)
}
