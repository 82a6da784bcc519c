// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
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
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, err := range cleanup.ParseNetfilter(b) {
			if err != nil && err.Error() == "" {
				t.Error("an error without words")
			}
		}
	})
}

// Whatever a table holds, what is deleted is in it, and ours.
func FuzzIPTablesSave(f *testing.F) {
	f.Add(strings.Join(ourRules, "\n"))
	f.Add(strings.Join(foreignRules, "\n"))
	f.Add("*nat\n:CILIUM_x - [0:0]\n-A INPUT -j CILIUM_x\n-A INPUT -j CILIUM_x\n-A CILIUM_x\n-A\n-A \n:\n: -\n-A INPUT -g CILIUM_x -j ACCEPT\n")
	f.Add("*nat\n:CILIUM_x - [0:0]\n-A INPUT -m comment --comment \"a\\\" \n-A INPUT -j CILIUM_x\nCOMMIT\" -j CILIUM_x\nCOMMIT\n")
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Split(text, "\n")
		for line := range strings.Lines(cleanup.ParseSave(text)) {
			line = strings.TrimSuffix(line, "\n")
			cmd, rest, _ := strings.Cut(line, " ")
			switch cmd {
			case "-D":
				if !slices.Contains(lines, "-A "+rest) || !strings.Contains(rest, "CILIUM_") {
					t.Errorf("deletes %q", line)
				}
			case "-F", "-X":
				if !strings.HasPrefix(rest, "CILIUM_") && !strings.HasPrefix(rest, "OLD_CILIUM_") {
					t.Errorf("deletes %q", line)
				}
			case "*raw", "*mangle", "*nat", "*filter", "*security", "COMMIT":
			default:
				t.Errorf("says %q", line)
			}
		}
	})
}
