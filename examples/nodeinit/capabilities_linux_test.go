// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// withCapabilities runs the program as root with only these capabilities; it enters the node
// through its /proc, as a pod does.
func (n *node) withCapabilities(capabilities []string, args ...string) outcome {
	n.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := n.Command("setpriv", append([]string{
		"--bounding-set", "-all,+" + strings.Join(capabilities, ",+"), "--inh-caps", "-all", "--",
		binary, "--host-proc", "/proc",
	}, args...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	return finish(n.t, cmd.Run, &stdout, &stderr)
}

// The deployment example's capabilities suffice, and each is needed.
func TestPLAN7_ApplyNeedsThreeCapabilitiesAndNamesTheOneThatIsMissing(t *testing.T) {
	t.Parallel()
	needed := []string{"sys_admin", "sys_chroot", "sys_ptrace"}
	n := newNode(t)
	n.shell("echo 2 > /proc/sys/net/ipv4/conf/all/rp_filter")
	before := n.state()
	apply := n.args("apply", "--output", "json", "--dest", filepath.Join(n.work, "config")) // the pod's, not the node's
	for _, missing := range needed {
		rest := slices.DeleteFunc(slices.Clone(needed), func(c string) bool { return c == missing })
		o := n.withCapabilities(rest, apply...)
		require.Equal(t, 1, o.code, "without %s", missing)
		require.Contains(t, o.stderr, "CAP_"+strings.ToUpper(missing))
		require.Empty(t, before.Diff(n.state()))
	}
	o := n.withCapabilities(needed, apply...)
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, each("changed", "cleanup"), o.report(t).statuses())
	o = n.withCapabilities(needed, "uninstall")
	require.Zero(t, o.code, o.stderr)
	require.Empty(t, before.Diff(n.state()))
}
