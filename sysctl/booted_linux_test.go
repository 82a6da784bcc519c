// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build systemd

package sysctl_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/sysctl"
)

// These tests are for a machine that make systemd has booted: they change it.

const lateConf = "/run/sysctl.d/99-zzzz.conf"

// freshService resets the service's start counter and the values that tests set.
func freshService(t *testing.T) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(lateConf), 0o755))
	clear := func() {
		require.NoError(t, os.RemoveAll(lateConf))
		require.NoError(t, os.RemoveAll("/etc/sysctl.d/50-x.conf"))
		require.NoError(t, sysctl.Kernel{}.Set(sysctl.Setting{Key: bad, Value: "0"}, sysctl.Setting{Key: "net.ipv4.conf.lo.tag", Value: "0"}))
		out, err := exec.Command("systemctl", "reset-failed", "systemd-sysctl.service").CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	clear()
	t.Cleanup(clear)
}

func loTag(t *testing.T) string {
	t.Helper()
	value, err := sysctl.Kernel{}.Get("net.ipv4.conf.lo.tag")
	require.NoError(t, err)
	return value
}

func bootedDropIn(t *testing.T) recordedFile {
	t.Helper()
	return recordedFile{sysctl.DropIn{
		Name: "50-x.conf", Settings: []sysctl.Setting{{Key: bad, Value: "2"}},
		Reload: "systemd-sysctl.service",
	}, real(t, filepath.Join(t.TempDir(), "state"))}
}

func TestSYS4_BootedSystemdReloads(t *testing.T) {
	freshService(t)
	before := values(t)
	require.NoError(t, os.WriteFile(lateConf, []byte("net.ipv4.conf.lo.tag = 7\n"), 0o644))
	d := bootedDropIn(t)
	require.Contains(t, check(t, d), "set net.ipv4.conf.lo.tag = 7 (is 0), by "+lateConf+":1")
	require.NoError(t, d.Apply(t.Context()))
	require.Equal(t, "7", loTag(t), "it has applied every file")
	require.Empty(t, check(t, d))
	require.NoError(t, d.Revert(t.Context()))
	require.Empty(t, differing(before, values(t)))
}

func TestSYS4_BootedSystemdFails(t *testing.T) {
	freshService(t)
	require.NoError(t, os.WriteFile(lateConf, []byte("net.ipv4.conf.lo.tag = 0\nnet.ipv4.ip_forward = yes\n"), 0o644))
	d := bootedDropIn(t)
	err := d.Apply(t.Context())
	require.ErrorContains(t, err, `the job ended with "failed"`)
	require.NoError(t, d.Revert(t.Context()))
}

// The unit runs the child, and is ordered before the service.
func TestSYS4_BootedSystemdDoesNotWaitForItself(t *testing.T) {
	if os.Getenv("SLIPWAY_TEST_CHILD") == t.Name() {
		require.ErrorIs(t, (&sysctl.Systemd{}).Reload(t.Context()), sysctl.ErrNoSystemd)
		require.NoError(t, bootedDropIn(t).Apply(t.Context()))
		return
	}
	freshService(t)
	program, err := os.Executable()
	require.NoError(t, err)
	for _, before := range []string{"systemd-sysctl.service", "early.target"} {
		if before == "early.target" {
			require.NoError(t, os.WriteFile("/run/systemd/system/early.target", []byte("[Unit]\nBefore=systemd-sysctl.service\n"), 0o644))
		}
		unit := "[Unit]\nBefore=" + before + "\n[Service]\nType=oneshot\nTimeoutStartSec=60\n" +
			"Environment=HOME=/root SLIPWAY_TEST_REQUIRE_ROOT=1 SLIPWAY_TEST_CHILD=" + t.Name() + "\n" +
			"ExecStart=" + program + " -test.run ^" + t.Name() + "$$\n"
		require.NoError(t, os.WriteFile("/run/systemd/system/child.service", []byte(unit), 0o644))
		out, err := exec.Command("systemctl", "daemon-reload").CombinedOutput()
		require.NoError(t, err, "%s", out)
		start := []string{"start", "child.service"}
		if before == "early.target" {
			start = append(start, before)
		}
		out, err = exec.Command("systemctl", start...).CombinedOutput()
		require.NoError(t, err, "before %s: %s", before, out)
	}
}
