// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package netfilter

// Parse applies every parser to a netfilter message.
func Parse(b []byte) []error {
	_, _, chain := parseChain(2, b)
	_, rule := parseRule(2, b)
	_, set := parseIPSet(b)
	_, table := parseTable(2, b)
	_, elements := leadsTo(b, "x")
	return []error{chain, rule, set, table, elements}
}
