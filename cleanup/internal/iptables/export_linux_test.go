// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package iptables

import (
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/netfilter"
)

// ParseSave parses iptables-save's output, and returns the input that makes iptables-restore
// delete everything owned in it.
func ParseSave(text string, owned func(chain string) bool, comments ...string) (deletions string) {
	set := newRuleset(netfilter.Owned{Chain: owned, Comment: func(comment string) bool { return slices.Contains(comments, comment) }}, "ip")
	for line := range strings.Lines(text) {
		set.line(strings.TrimSuffix(line, "\n"))
	}
	var all []Object
	for _, rule := range set.Rules {
		all = append(all, rule)
	}
	for _, chain := range set.SortedChains() {
		all = append(all, chain)
	}
	return set.deletions(all)
}
