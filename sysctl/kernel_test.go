// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/sysctl"
)

func TestSYS2_SetWritesOnlyWhatDiffers(t *testing.T) {
	fake := bootstraptest.NewKernel("eth0")
	k := sysctl.Kernel{Files: fake}
	want := []sysctl.Setting{
		{Key: "net.ipv4.tcp_rmem", Value: "4096 131072 6291456"}, // the kernel prints tabs
		{Key: "net/ipv4/conf/eth0/rp_filter", Value: "2"},
		{Key: "net.core.bpf_jit_enable", Value: "0x1"},
	}
	changes, err := k.Diff(want...)
	require.NoError(t, err)
	require.Equal(t, []string{"set net.ipv4.conf.eth0.rp_filter = 2 (is 0)"}, changes)
	require.Empty(t, fake.Writes(), "a diff writes nothing")

	require.NoError(t, k.Set(want...))
	require.NoError(t, k.Set(want...))
	require.Equal(t, []string{"net.ipv4.conf.eth0.rp_filter = 2"}, fake.Writes())
	value, err := k.Get("net.ipv4.conf.eth0.rp_filter")
	require.NoError(t, err)
	require.Equal(t, "2", value)
}

// refuse makes writes to keys, which contain no slash, fail with err.
func refuse(err error, keys ...string) func(op, path string) error {
	return func(op, path string) error {
		if op == "write" && slices.Contains(keys, strings.ReplaceAll(strings.TrimPrefix(path, "/proc/sys/"), "/", ".")) {
			return err
		}
		return nil
	}
}

// readOnly is a kernel's Fail in an unprivileged container.
func readOnly(op, path string) error {
	if op == "open" {
		return syscall.EROFS
	}
	return nil
}

func TestSYS2_OneBadKeyDoesNotStopTheRest(t *testing.T) {
	fake := bootstraptest.NewKernel("eth0")
	fake.Fail = refuse(syscall.EPERM, "net.core.bpf_jit_enable", "kernel.timer_migration")
	fake.Deafen("net.ipv4.fib_multipath_use_neigh")
	err := sysctl.Kernel{Files: fake}.Set(
		sysctl.Setting{Key: "net.no.such_key", Value: "7"},
		sysctl.Setting{Key: "net..ipv4", Value: "8"},
		sysctl.Setting{Key: "net.core.bpf_jit_enable", Value: "0"},
		sysctl.Setting{Key: "kernel.timer_migration", Value: "0"},
		sysctl.Setting{Key: "net.ipv4.conf.all.rp_filter", Value: "strict"},
		sysctl.Setting{Key: "net.ipv4.fib_multipath_use_neigh", Value: "1"},
		sysctl.Setting{Key: "net.ipv4.conf", Value: "1"},
		sysctl.Setting{Key: "net.ipv4.conf.eth0.rp_filter", Value: "1"},
	)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorIs(t, err, syscall.EINVAL)
	for _, text := range []string{
		"set net.no.such_key = 7: ", "module", `"net..ipv4"`, "set net.core.bpf_jit_enable = 0 (is 1): ", "CAP_SYS_ADMIN",
		"set kernel.timer_migration = 0 (is 1): ", "set net.ipv4.conf.all.rp_filter = strict (is 0): ", "does not take this value",
		"set net.ipv4.fib_multipath_use_neigh = 1 (is 0): written, but it is still different", "read net.ipv4.conf: ",
	} {
		require.ErrorContains(t, err, text)
	}
	require.Equal(t, "1", fake.Values()["net.ipv4.conf.eth0.rp_filter"])
}

func TestSYS2_IgnoreFailure(t *testing.T) {
	fake := &bootstraptest.Kernel{}
	fake.Fail = refuse(syscall.EPERM, "kernel.timer_migration")
	fake.Deafen("net.ipv4.fib_multipath_use_neigh")
	k := sysctl.Kernel{Files: fake}
	require.NoError(t, k.Set(
		sysctl.Setting{Key: "net.no.such_key", Value: "7", IgnoreFailure: true},
		sysctl.Setting{Key: "net.no.such_key2", Value: "7", IfExists: true},
		sysctl.Setting{Key: "kernel.timer_migration", Value: "0", IgnoreFailure: true},
		sysctl.Setting{Key: "net.ipv4.fib_multipath_use_neigh", Value: "1", IgnoreFailure: true},
		sysctl.Setting{Key: "net.ipv4.ip_forward", Value: "1", IgnoreFailure: true},
	))
	require.Equal(t, "1", fake.Values()["net.ipv4.ip_forward"], "a setting that may fail is set if possible")
	require.ErrorIs(t, k.Set(sysctl.Setting{Key: "kernel.timer_migration", Value: "0", IfExists: true}), syscall.EPERM)

	fake.Fail = readOnly
	changes, err := k.Diff(sysctl.Setting{Key: "net.core.bpf_jit_enable", Value: "0", IgnoreFailure: true})
	require.NoError(t, err)
	require.Empty(t, changes, "a key that cannot be opened for writing is tolerated")

	fake.Fail = nil
	fake.PutValue("kernel.unprivileged_bpf_disabled", "1")
	changes, err = k.Diff(sysctl.Setting{Key: "kernel.unprivileged_bpf_disabled", Value: "2", IgnoreFailure: true})
	require.NoError(t, err)
	require.Empty(t, changes, "it is fixed until the next boot")
}

func TestSYS2_Globs(t *testing.T) {
	for name, tc := range map[string]struct {
		settings []sysctl.Setting
		want     []string
	}{
		"every link that matches": {
			settings: []sysctl.Setting{{Key: "net.ipv4.conf.lxc*.rp_filter", Value: "2"}},
			want:     []string{"lxc1 2", "lxc2/7 2"},
		},
		"an excluded glob takes back that very glob, as systemd has it": {
			settings: []sysctl.Setting{
				{Key: "net.ipv4.conf.lxc*.rp_filter", Value: "2"},
				{Key: "net.ipv4.conf.lxc*.rp_filter", Exclude: true},
				{Key: "net.ipv4.conf.lx*.rp_filter", Value: "1"},
			},
			want: []string{"lxc1 1", "lxc2/7 1"},
		},
		"classes, braces and question marks": {
			settings: []sysctl.Setting{{Key: "net.ipv4.conf.{et,lx}[!x]?.rp_filter", Value: "1"}},
			want:     []string{"eth0 1", "lxc1 1"},
		},
		"keys that exist, of a pattern that goes through files": {
			settings: []sysctl.Setting{{Key: "net.ipv4.*.{lxc1,none}.rp_filter", Value: "1"}},
			want:     []string{"lxc1 1"},
		},
		"a name in braces that does not exist": {
			settings: []sysctl.Setting{{Key: "net.ipv4.conf.{et?0,lxc1,none}.rp_filter", Value: "1"}},
			want:     []string{"eth0 1", "lxc1 1"},
		},
		"nothing matches yet":        {settings: []sysctl.Setting{{Key: "net.ipv4.conf.cali*.rp_filter", Value: "1"}, {Key: "net.ipv4.conf.{cali?,eth1}.rp_filter", Value: "1"}, {Key: "net.ipv4.zz_*", Value: "1"}}},
		"nothing matches":            {settings: []sysctl.Setting{{Key: "net.ipv6.c*.x", Value: "1", IfExists: true}, {Key: "nix.*.y", Value: "1", IgnoreFailure: true}}},
		"nothing closes the bracket": {settings: []sysctl.Setting{{Key: "net.ipv4.conf.[.rp_filter", Value: "1", IfExists: true}}},
		"an escape":                  {settings: []sysctl.Setting{{Key: `net.ipv4.conf.\lx\c?.rp_filter`, Value: "1"}}, want: []string{"lxc1 1"}},
		"a leading dot":              {settings: []sysctl.Setting{{Key: "net/ipv4/conf/.h*/rp_filter", Value: "1"}, {Key: "net/ipv4/conf/[.h]*/rp_filter", Value: "2"}}, want: []string{"/hidden 1"}},
		"below a file":               {settings: []sysctl.Setting{{Key: "net.ipv4.ip_forward.*", Value: "1", IfExists: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			fake := bootstraptest.NewKernel("eth0", "lxc1", "lxc2.7", ".hidden")
			changes, err := sysctl.Kernel{Files: fake}.Changes(tc.settings...)
			require.NoError(t, err)
			var got []string
			for _, c := range changes {
				got = append(got, linkOf(c.Key)+" "+c.Value)
			}
			require.Equal(t, tc.want, got)
			require.NoError(t, sysctl.Kernel{Files: fake}.Set(tc.settings...))
			changes, err = sysctl.Kernel{Files: fake}.Changes(tc.settings...)
			require.NoError(t, err)
			require.Empty(t, changes)
		})
	}
	_, err := sysctl.Kernel{Files: &bootstraptest.Kernel{}}.Get("net.ipv4.conf.*.rp_filter")
	require.ErrorContains(t, err, "pattern")
}

// A pattern may match nothing on a node without pods; one that could match nothing
// on any node counts as a missing key.
func TestSYS2_APatternThatCouldNeverMatchIsMissing(t *testing.T) {
	for key, lacks := range map[sysctl.Key]string{
		"net.ipv4.conf.lxc*.rp_filtr":          "net.ipv4.conf.*.rp_filtr",
		"net.ipv4.confs.lxc*.rp_filter":        "net.ipv4.confs.*.rp_filter",
		"net.ipv4.conf.{lxc,cali}*.rp_filtr":   "net.ipv4.conf.*.rp_filtr",
		"net.ipv4.{conf,confs}.lxc*.rp_filtr":  "net.ipv4.conf.*.rp_filtr, net.ipv4.confs.*.rp_filtr",
		"net.ipv?.conf.lxc*.send_redirect":     "net.*.conf.*.send_redirect",
		"net.ipv4.ip_forward.*":                "net.ipv4.ip_forward.*",
		"nix.*.y":                              "nix.*.y",
		"net.ipv4.conf.[.rp_filter":            "net.ipv4.conf.[.rp_filter",
		"net.ipv4.conf.lxc*.rp_filter.further": "net.ipv4.conf.*.rp_filter.further",
	} {
		fake := bootstraptest.NewKernel("eth0")
		k := sysctl.Kernel{Files: fake}
		wrong, right := sysctl.Setting{Key: key, Value: "1"}, sysctl.Setting{Key: "net.ipv4.ip_forward", Value: "1"}
		changes, err := k.Diff(wrong, right)
		require.Len(t, changes, 1, "%s: the rest is still listed", key)
		_, checked := ledger.Check(t.Context(), sysctl.Settings{Values: []sysctl.Setting{wrong}, Kernel: k})
		for _, err := range []error{err, checked, k.Set(wrong, right)} {
			require.ErrorIs(t, err, fs.ErrNotExist)
			require.ErrorContains(t, err, "no key can match without "+lacks+": ")
			require.Equal(t, "sysctl.key-missing", code.Of(err))
		}
		for _, may := range []sysctl.Setting{{Key: key, Value: "1", IgnoreFailure: true}, {Key: key, Value: "1", IfExists: true}, {Key: key, Exclude: true}} {
			changes, err := k.Diff(may)
			require.NoError(t, err, may)
			require.Empty(t, changes)
		}
	}
	fake := bootstraptest.NewKernel()
	fake.Fail = func(op, path string) error {
		if op == "readdir" {
			return syscall.EACCES
		}
		return nil
	}
	_, err := sysctl.Kernel{Files: fake}.Diff(sysctl.Setting{Key: "net.ipv4.conf.lxc*.rp_filtr", Value: "1"})
	require.ErrorIs(t, err, fs.ErrPermission, "an unreadable directory is not a missing key")
}

func linkOf(key sysctl.Key) string {
	const before, after = len("net.ipv4.conf."), len(".rp_filter")
	return string(key[before : len(key)-after])
}

func TestSetGoesOverKeysThatDragOthersTwice(t *testing.T) {
	fake := bootstraptest.NewKernel("eth0")
	want := []sysctl.Setting{
		{Key: "net.ipv4.conf.all.accept_redirects", Value: "1"}, // ip_forward will change it
		{Key: "net.ipv4.conf.eth0.forwarding", Value: "0"},
		{Key: "net.ipv4.ip_forward", Value: "1"},
	}
	require.NoError(t, sysctl.Kernel{Files: fake}.Set(want...))
	changes, err := sysctl.Kernel{Files: fake}.Diff(want...)
	require.NoError(t, err)
	require.Empty(t, changes)

	require.NoError(t, sysctl.Kernel{Files: fake}.Set(
		sysctl.Setting{Key: "net.ipv4.ip_forward", Value: "1"},
		sysctl.Setting{Key: "net.ipv4.conf.all.forwarding", Value: "0"}, // the same value
	))
	require.Equal(t, "0", fake.Values()["net.ipv4.ip_forward"], "the last one counts, as for systemd")
}

func TestSYS2_EqualValues(t *testing.T) {
	const mask = "net.core.rps_default_mask" // hexadecimal, with as many digits as there are processors
	for _, tc := range []struct {
		key        sysctl.Key
		is, wanted string
		same       bool
	}{
		{"net.x", "1", " 1 ", true}, {"net.x", "1", "01", true}, {"net.x", "8", "010", true}, {"net.x", "31", "0x1F", true}, {"net.x", "-1", "-0x1", true},
		{"net.x", "1", "0b1", false}, {"net.x", "8", "0o10", false}, {"net.x", "1000", "1_000", false}, {"net.x", "1\t2", "1 2", true},
		{"net.x", "1 2", "1", true}, {"net.x", "1", "1 2", false}, {"net.x", "1 2", "2", false}, {"net.x", "1 2", "1 x", false},
		{"net.x", "cubic", "cubic", true}, {"net.x", "cubic", "reno", false}, {"net.x", "", "", true}, {"net.x", "", "1", false},
		{mask, "0f", "f", true}, {mask, "00ff", "FF", true}, {mask, "00000000,00000002", "2", true}, {mask, "00", "0", true},
		{mask, "010", "8", false}, {mask, "0", "f", false}, {"net.core.flow_limit_cpu_bitmap", "1,00000000", "00000001,00000000", true},
	} {
		fake := &bootstraptest.Kernel{}
		fake.PutValue(string(tc.key), tc.is)
		changes, err := sysctl.Kernel{Files: fake}.Diff(sysctl.Setting{Key: tc.key, Value: tc.wanted})
		require.NoError(t, err)
		require.Equal(t, tc.same, len(changes) == 0, "%s: %q and %q", tc.key, tc.is, tc.wanted)
	}
}
