// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package iptables_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/cleanup/internal/iptables"
)

func owned(chain string) bool {
	return strings.HasPrefix(chain, "CILIUM_") || strings.HasPrefix(chain, "OLD_CILIUM_")
}

// In any table, only rules of ours are deleted, and only if they exist.
func FuzzIPTablesSave(f *testing.F) {
	f.Add("*nat\n:CILIUM_POST_nat - [0:0]\n:OLD_CILIUM_PRE_nat - [0:0]\n" +
		`-A POSTROUTING -m comment --comment "cilium-feeder: CILIUM_POST_nat" -j CILIUM_POST_nat` + "\n" +
		`-A CILIUM_POST_nat ! -o cilium_+ -m comment --comment "cilium masquerade \"non-cluster\"" -j MASQUERADE` + "\nCOMMIT\n")
	f.Add("*nat\n:KUBE-SERVICES - [0:0]\n:MY_CILIUM_x - [0:0]\n:cilium_lower - [0:0]\n:CILIUM - [0:0]\n-A PREROUTING -j MY_CILIUM_x\n" +
		`-A KUBE-SERVICES -m comment --comment "-j CILIUM_POST_nat" -j MARK --set-xmark 0x4000/0x4000` + "\nCOMMIT\n")
	f.Add("*nat\n:CILIUM_x - [0:0]\n-A INPUT -j CILIUM_x\n-A INPUT -j CILIUM_x\n-A CILIUM_x\n-A\n-A \n:\n: -\n-A INPUT -g CILIUM_x -j ACCEPT\n")
	f.Add("*nat\n:CILIUM_x - [0:0]\n-A INPUT -m comment --comment \"a\\\" \n-A INPUT -j CILIUM_x\nCOMMIT\" -j CILIUM_x\nCOMMIT\n")
	f.Add("*nat\n-A INPUT -m comment --comment \"of ours\" -j ACCEPT\n-A INPUT -m comment --comment \"--comment \\\"of ours\\\"\" -j ACCEPT\n-A INPUT -m comment --comment ours -j CILIUM_x\n--comment\nCOMMIT\n")
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Split(text, "\n")
		for line := range strings.Lines(iptables.ParseSave(text, owned, "of ours")) {
			line = strings.TrimSuffix(line, "\n")
			cmd, rest, _ := strings.Cut(line, " ")
			switch cmd {
			case "-D":
				if !slices.Contains(lines, "-A "+rest) || !strings.Contains(rest, "CILIUM_") && !strings.Contains(rest, "of ours") {
					t.Errorf("deletes %q", line)
				}
			case "-F", "-X":
				if !owned(rest) {
					t.Errorf("deletes %q", line)
				}
			case "*raw", "*mangle", "*nat", "*filter", "*security", "COMMIT":
			default:
				t.Errorf("says %q", line)
			}
		}
	})
}
