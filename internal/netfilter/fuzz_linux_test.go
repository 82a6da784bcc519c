// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package netfilter_test

import (
	"testing"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/netfilter"
)

func FuzzNetfilterMessages(f *testing.F) {
	attr := func(typ int, data []byte) []byte { return nl.NewRtAttr(typ, data).Serialize() }
	jump := attr(unix.NFTA_VERDICT_CHAIN, []byte("CILIUM_x\x00"))
	for _, typ := range []int{unix.NFTA_DATA_VERDICT, unix.NFTA_IMMEDIATE_DATA, unix.NFTA_EXPR_DATA} {
		jump = attr(typ, jump)
	}
	jump = append(attr(unix.NFTA_EXPR_NAME, []byte("immediate\x00")), jump...)
	f.Add([]byte{})
	f.Add(append(attr(unix.NFTA_RULE_CHAIN, []byte("x\x00")), attr(unix.NFTA_RULE_EXPRESSIONS, attr(unix.NFTA_LIST_ELEM, jump))...))
	f.Add(append(attr(unix.NFTA_CHAIN_NAME, []byte("CILIUM_x\x00")), attr(unix.NFTA_CHAIN_HANDLE, []byte{0, 0, 0, 0, 0, 0, 0, 9})...))
	comment := attr(unix.NFTA_EXPR_DATA, append(attr(unix.NFTA_MATCH_NAME, []byte("comment\x00")), attr(unix.NFTA_MATCH_INFO, []byte("x"))...))
	f.Add(attr(unix.NFTA_RULE_EXPRESSIONS, attr(unix.NFTA_LIST_ELEM, append(attr(unix.NFTA_EXPR_NAME, []byte("match\x00")), comment...))))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, err := range netfilter.Parse(b) {
			if err != nil && err.Error() == "" {
				t.Error("an error without words")
			}
		}
	})
}
