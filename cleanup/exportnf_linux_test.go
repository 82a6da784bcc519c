// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import "maps"

// ParseNetfilter reads a message of netfilter's in all ways that there are.
func ParseNetfilter(b []byte) []error {
	own := &owned{Ownership: Cilium()}
	_, _, chain := own.parseNFTChain(2, b)
	_, rule := parseNFTRule(2, b)
	_, set := parseIPSet(b)
	errs := []error{chain, rule, set}
	for _, family := range legacyFamilies() {
		_, err := family.parseChains(b)
		errs = append(errs, err)
	}
	return errs
}

// ParseSave reads what iptables-save wrote of a table, and writes what
// iptables-restore is given to remove all of it that is owned.
func ParseSave(text string) (deletions string) {
	own := &owned{Ownership: Cilium()}
	state := &legacyState{chains: map[legacyChainRef]int{}}
	own.parseSave(state, "ip", "nat", text)
	var items []Item
	for _, rule := range state.jumps {
		items = append(items, Item{ref: rule})
	}
	for chain := range maps.Keys(state.chains) {
		items = append(items, Item{ref: chain})
	}
	return state.deletions(items)
}

// LegacyChains returns the names of the chains in a table that exists.
func LegacyChains(family int, table string) ([]string, error) {
	return legacyFamilies()[family].chains(table)
}
