// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"maps"
	"strings"
)

// ParseNetfilter reads a message of netfilter's in all ways that there are.
func ParseNetfilter(b []byte) []error {
	own := &owned{Ownership: Cilium()}
	_, _, chain := own.parseNFTChain(2, b)
	_, rule := parseNFTRule(2, b)
	_, set := parseIPSet(b)
	return []error{chain, rule, set}
}

// ParseSave reads what iptables-save wrote, and writes what iptables-restore is
// given to remove all of it that is owned.
func ParseSave(text string) (deletions string) {
	state := newLegacyState(&owned{Ownership: Cilium()}, "ip")
	for line := range strings.Lines(text) {
		state.line(strings.TrimSuffix(line, "\n"))
	}
	var items []Item
	for _, rule := range state.jumps {
		items = append(items, Item{ref: rule})
	}
	for chain := range maps.Keys(state.chains) {
		items = append(items, Item{ref: chain})
	}
	return state.deletions(items)
}
