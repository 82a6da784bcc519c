// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"encoding/xml"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestATimelineOfAnyRun(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	o := n.run(n.args("apply", "--timeline", "/run/apply.svg")...)
	require.Zero(t, o.code, o.stderr)
	image := n.read("/run/apply.svg")
	require.NoError(t, xml.Unmarshal([]byte(image), new(struct{})), image)
	for _, name := range []string{"resolve configuration", "apply", "config", "sysctl", "cni"} {
		require.Contains(t, image, ">"+name+"</text>")
	}
	require.Contains(t, image, " ms, changed</text>")

	o = n.run(n.args("apply", "--timeline", "/run/again.svg", "--output", "json")...)
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, n.read("/run/again.svg"), " ms, unchanged</text>")

	// A run that fails is drawn too, and so is a check.
	o = n.run("mount-bpffs", "/proc", "--timeline", "/run/failed.svg")
	require.Equal(t, 1, o.code, o.stderr)
	require.Contains(t, n.read("/run/failed.svg"), " ms, failed</text>")
	require.Equal(t, 2, n.run(n.args("check", "--cgroup-root", "/run/other", "--timeline", "/run/look.svg")...).code)
	require.Contains(t, n.read("/run/look.svg"), " ms, would-change</text>")
	require.Zero(t, n.run("uninstall", "--timeline", "/run/undone.svg").code)
	require.Contains(t, n.read("/run/undone.svg"), ">nodeinit uninstall</text>")
	require.Contains(t, n.read("/run/undone.svg"), " ms, changed</text>")

	for _, args := range [][]string{{"apply", "--timeline", "x.html"}, {"build-config", "--watch", "--timeline", "x.svg"}} {
		require.Equal(t, 64, n.run(args...).code)
	}
	o = n.run("mount-bpffs", "--timeline", "/run/nowhere/x.svg")
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, "--timeline: ")
}
