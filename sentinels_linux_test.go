// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package slipway_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/sysctl"
)

// A plan's error still contains the sentinels that callers branch on, even if the action runs
// on the host, and its JSON the codes that operators group by.
func TestPLAN18_SentinelsHoldThroughAPlanOnTheHost(t *testing.T) {
	node := bootstraptest.NewNode(t)
	config, err := configresolve.Resolve(t.Context(), configresolve.Static("", map[string]string{"a": "b"}))
	require.NoError(t, err)
	codes := map[string]string{
		"bpffs.ErrForeign": "bpffs.foreign", "cgroup.ErrForeign": "cgroup.foreign", "another cgroup root": "cgroup.not-root",
		"cniinstall.ErrPluginMissing": "cni.plugin-missing", "cniinstall.ErrTargetMissing": "cni.target-missing",
		"configdir.ErrEmpty": "config.empty", "ledger.ErrRefused": "ledger.refused",
		"a read-only directory": "sysctl.directory-read-only", "a path's type": "hostpath.wrong-type",
	}
	for what, tc := range map[string]struct {
		want   error
		wants  ledger.Wanter
		before func() error // on the node
	}{
		"bpffs.ErrForeign":    {bpffs.ErrForeign, bpffs.Mount{Path: "/run/bpf"}, func() error { return tmpfs("/run/bpf") }},
		"cgroup.ErrForeign":   {cgroup.ErrForeign, cgroup.Mount{Path: "/run/cgroup"}, func() error { return tmpfs("/run/cgroup") }},
		"another cgroup root": {wants: cgroup.Mount{Path: "/run", Kernel: otherRoot("/run")}},
		"cniinstall.ErrPluginMissing": {want: cniinstall.ErrPluginMissing, wants: cniinstall.Install{
			Config: cniinstall.Whole(`{"cniVersion":"1.0.0","name":"n","plugins":[{"type":"nobody-has-it"}]}`), ConfName: "10-n.conflist",
		}},
		"cniinstall.ErrTargetMissing": {want: cniinstall.ErrTargetMissing, wants: cniinstall.Install{
			Config: cniinstall.Chained{Network: "nobody", Agent: cniinstall.Agent{Plugin: "p"}}, ConfName: "05-n.conflist",
		}},
		"configdir.ErrEmpty": {want: configdir.ErrEmpty, wants: configdir.Writer{Path: "/run/config", Config: &configresolve.Config{}}, before: func() error {
			_, err := configdir.Write(t.Context(), "/run/config", config)
			return err
		}},
		"ledger.ErrRefused": {want: ledger.ErrRefused, wants: sysctl.Settings{
			Values: []sysctl.Setting{{Key: "net.ipv4.ip_forward", Value: "1"}}, Kernel: sysctl.Kernel{Files: deaf("net.ipv4.ip_forward")},
		}},
		"a read-only directory": {wants: sysctl.DropIn{Dir: "/run/sysctl.d", Name: "50-x.conf", Settings: sysctl.Forwarding()}, before: func() error {
			return errors.Join(tmpfs("/run/sysctl.d"), unix.Mount("", "/run/sysctl.d", "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		}},
		"a path's type": {want: unix.ENOTDIR, wants: hostpath.Paths{{Path: "/etc/hostname/x", Type: "DirectoryOrCreate"}},
			before: func() error { return os.WriteFile("/etc/hostname", nil, 0o644) }},
	} {
		t.Run(what, func(t *testing.T) {
			if tc.before != nil {
				require.NoError(t, node.Do(t.Context(), func(context.Context) error { return tc.before() }))
			}
			sentinelThrough(t, node, bootstrap.Step{Wants: tc.wants}, tc.want, codes[what])
		})
	}
	t.Run("of an action", func(t *testing.T) {
		never := bootstrap.Func("never", func(context.Context) (bool, error) { return false, nil }, func(context.Context) error { return nil })
		sentinelThrough(t, node, bootstrap.Step{Action: onHost{never}}, ledger.ErrRefused, "ledger.refused")
	})
}

// sentinelThrough requires that a plan's error is the sentinel, if there is one, with its code.
func sentinelThrough(t *testing.T, node *bootstraptest.Node, s bootstrap.Step, sentinel error, code string) {
	t.Helper()
	s.Name = "step"
	plan := bootstrap.Plan{Host: hostns.Host{Proc: node.Proc()}, Steps: []bootstrap.Step{s}}
	report, err := plan.Apply(t.Context())
	if sentinel != nil {
		require.ErrorIs(t, err, sentinel)
		require.ErrorIs(t, report.Results[0].Err, sentinel)
	}
	var step *bootstrap.StepError
	require.ErrorAs(t, err, &step)
	require.Equal(t, "step", step.Step)
	require.Equal(t, code, bootstrap.Code(step))
	require.Equal(t, code, codeInJSON(t, report))
}

// onHost is an action that a plan calls on the host, even if it acts in memory.
type onHost struct{ bootstrap.Action }

func (onHost) OnHost() (namespaces []string, places map[string]string) {
	return []string{"mnt", "net", "cgroup"}, nil
}

// The same for a ledger: errors about the agent's owner, and about records that cannot be
// undone.
func TestPLAN18_SentinelsOfALedgerHoldThroughAPlan(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	path := filepath.Join(t.TempDir(), "dir", "file")
	host := bootstraptest.Host(t)
	plan := func(owner string) *bootstrap.Plan {
		paths := hostpath.Paths{{Path: filepath.Dir(path), Type: "DirectoryOrCreate"}, {Path: path, Type: "FileOrCreate"}}
		return &bootstrap.Plan{
			Host:   host,
			Ledger: &ledger.Ledger{Dir: state, Agent: "agent", Owner: owner},
			Steps:  []bootstrap.Step{{Name: "paths", Wants: paths}},
		}
	}
	older, newer := plan("older"), plan("newer")
	for _, p := range []*bootstrap.Plan{older, newer} {
		_, err := p.Apply(t.Context())
		require.NoError(t, err)
	}
	report, err := older.Apply(t.Context())
	require.ErrorIs(t, err, ledger.ErrNotOwner)
	require.Equal(t, "ledger.revoked", codeInJSON(t, report))
	require.NoError(t, os.WriteFile(path, []byte("another's"), 0o644))
	report, err = newer.Revert(t.Context())
	require.ErrorIs(t, err, ledger.ErrChanged)
	require.Equal(t, "ledger.changed", codeInJSON(t, report))
	require.NoError(t, os.Chmod(state, 0o777))
	report, err = newer.Check(t.Context())
	require.Error(t, err)
	require.Equal(t, "ledger.untrusted", codeInJSON(t, report))
	require.NoError(t, os.Chmod(state, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(state, "ledger"), []byte("{"), 0o600))
	report, err = newer.Check(t.Context())
	require.ErrorIs(t, err, ledger.ErrUnreadable)
	require.Equal(t, "ledger.unreadable", codeInJSON(t, report))

	report, err = (&bootstrap.Plan{Host: newer.Host, Steps: []bootstrap.Step{{Name: "paths", Wants: hostpath.Paths{}}}}).Revert(t.Context())
	require.NoError(t, err)
	require.Equal(t, bootstrap.Skipped, report.Results[0].Status)
	require.Contains(t, report.Results[0].Reason, "nothing is recorded")
}

// codeInJSON is the code in the report's JSON.
func codeInJSON(t *testing.T, report *bootstrap.Report) string {
	t.Helper()
	text, err := json.Marshal(report)
	require.NoError(t, err)
	var document struct{ Code string }
	require.NoError(t, json.Unmarshal(text, &document))
	return document.Code
}

func tmpfs(path string) error {
	return errors.Join(os.MkdirAll(path, 0o755), unix.Mount("other", path, "tmpfs", 0, ""))
}

// otherRoot is a kernel whose cgroup2 on path has a root other than the host's.
func otherRoot(path string) *bootstraptest.Kernel {
	k := bootstraptest.NewKernel()
	if err := k.PutMount(path, "cgroup2", "root=/container"); err != nil {
		panic(err)
	}
	return k
}

// deaf is a kernel that accepts writes to the key and ignores them.
func deaf(key string) *bootstraptest.Kernel {
	k := bootstraptest.NewKernel("eth0")
	k.Deafen(key)
	return k
}
