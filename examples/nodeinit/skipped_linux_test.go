// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// In every report, each step that was skipped has its reason, as has each that uninstall finds
// nothing of.
func TestPLAN17_EverySkippedStepHasItsReason(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	skipped := map[string]bool{}
	for _, args := range [][]string{
		{"check"}, {"apply"}, {"apply", "--only", "cgroup"}, {"apply", "--skip", "sysctl,cni,bpffs"}, n.args("apply"), n.args("apply", "--skip", "config"),
		n.args("apply", "--custom-cni-conf"), {"apply", "--state-dir=", "--sysctl-conf-dir="}, {"apply", "--agent", "other", "--bpf-root", "/run/bpf"},
		{"run", "--only", "bpffs", "--", "true"}, {"mount-cgroup"}, {"mount-bpffs"}, {"sysctlfix"}, {"install-cni", "--plugins", n.plugins},
		{"uninstall", "--dry-run"}, {"uninstall", "--only", "cni"}, {"uninstall-cni"}, {"uninstall"}, {"uninstall"}, {"uninstall", "--all-agents"},
	} {
		o := n.run(slices.Insert(slices.Clone(args), 1, "--output=json")...)
		require.Contains(t, []int{0, 2}, o.code, "%s: %s", args, o.stderr)
		if o.stdout == "" {
			continue // the command of run has its output
		}
		for _, r := range o.report(t).Results {
			if r.Status == "skipped" || r.Status == "unchanged" && args[0] == "uninstall" {
				require.NotEmpty(t, r.Reason, "%s: %s", args, r.Step)
				skipped[r.Step] = true
			}
		}
	}
	require.Subset(t, skipped, map[string]bool{"config": true, "cleanup": true, "cgroup": true, "sysctl": true, "bpffs": true, "cni": true})
}
