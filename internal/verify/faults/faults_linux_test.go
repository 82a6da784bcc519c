// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package faults_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/faults"
)

// build compiles nodeinit, and skips the test if tools are missing.
func build(t *testing.T, tools ...string) (binary, work string) {
	t.Helper()
	testns.Root(t)
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			testns.Skip(t, tool+" is not installed")
		}
	}
	work = t.TempDir()
	binary, err := faults.Nodeinit.Build(t.Context())
	require.NoError(t, err)
	return binary, work
}

// A sample, always the same; `make faults` plays all.
func TestPLAN3_FaultsAtCalls(t *testing.T) {
	points, kills := 75, 15 // of each scenario, and of each leaf's
	if testing.Short() {
		points, kills = 5, 1
	}
	binary, work := build(t, "strace", "ip", "tc")
	for _, s := range faults.Scenarios(work) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			limit := points
			if strings.HasPrefix(s.Name, "leaf-") {
				limit = kills
			}
			require.Greater(t, play(t, s.Name, faults.Campaign{Binary: binary, Work: work, Limit: limit}), limit*3/4)
		})
	}
}

// Each call that configures a mount, out of memory: no cgroup stays behind.
func TestCG1_NoMemoryToConfigureAMount(t *testing.T) {
	binary, work := build(t, "strace")
	noMemory := func(p faults.Point) bool { return p.Call == "fsconfig" && p.Fault == "ENOMEM" }
	require.GreaterOrEqual(t, play(t, "apply", faults.Campaign{Binary: binary, Work: work, Wanted: noMemory}), 4)
}

// play plays a scenario, and counts the points that were reached.
func play(t *testing.T, scenario string, c faults.Campaign) (reached int) {
	t.Helper()
	c.Done = func(v faults.Verdict) error {
		if v.Line != "" {
			reached++
		}
		if v.Violation != "" {
			t.Errorf("%s: %s\nexit status %d: %s\n%s", v.Point, v.Line, v.Code, v.Output, v.Violation)
		}
		return nil
	}
	require.NoError(t, c.Play(t.Context(), scenario))
	return reached
}

func TestDamagedNodesAreReportedAndThenConverge(t *testing.T) {
	testns.SkipShort(t, "20 seconds")
	binary, work := build(t, "mkfs.ext4", "chattr")
	for _, setting := range faults.Settings() {
		c := faults.Campaign{Binary: binary, Work: work}
		require.NoError(t, c.Suffer(t.Context(), setting, func(trouble faults.Trouble, err error) error {
			t.Run(trouble.Name, func(t *testing.T) { require.NoError(t, err) })
			if err != nil {
				return errors.New("the state of the node is unknown")
			}
			return nil
		}))
	}
}

func TestPowerCuts(t *testing.T) {
	testns.SkipShort(t, "20 seconds")
	binary, work := build(t, "strace", "mkfs.ext4", "mkfs.xfs")
	for _, disk := range []struct {
		system, command string
		cuts            int
	}{{"ext4", "apply", 8}, {"ext4", "install-cni", 4}, {"xfs", "apply", 4}, {"xfs", "install-cni", 4}} {
		t.Run(disk.system+" "+disk.command, func(t *testing.T) {
			cuts := 0
			require.NoError(t, faults.PowerCuts{
				Binary: binary, Work: work, FileSystem: disk.system, Command: disk.command, Limit: disk.cuts,
				Done: func(c faults.Cut) error {
					cuts++
					if c.Violation != "" {
						t.Errorf("%s, committed: %t: %s", c.Point, c.Committed, c.Violation)
					}
					return nil
				},
			}.Play(t.Context()))
			require.Equal(t, disk.cuts, cuts)
		})
	}
}
