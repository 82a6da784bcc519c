// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/sysctl"
)

var (
	_ bootstrap.Adviser = sysctl.DropIn{}
	_ bootstrap.Adviser = sysctl.Settings{}
)

func check(t *testing.T, a interface {
	Check(context.Context) ([]string, error)
}) []string {
	t.Helper()
	changes, err := a.Check(t.Context())
	require.NoError(t, err)
	return changes
}

func advise(t *testing.T, a bootstrap.Adviser) []string {
	t.Helper()
	advice, err := a.Advise(t.Context())
	require.NoError(t, err)
	return advice
}

func checkRevert(t *testing.T, a interface {
	CheckRevert(context.Context) ([]string, error)
}) []string {
	t.Helper()
	changes, err := a.CheckRevert(t.Context())
	require.NoError(t, err)
	return changes
}

// recorded opens the ledger in state for one step.
func recorded(t *testing.T, fake *bootstraptest.Kernel, state, step string) book {
	t.Helper()
	return book{opened(t, state, "agent", fake, fake, ""), step}
}

func forwarding(t *testing.T, fake *bootstraptest.Kernel, state string) recordedValues {
	t.Helper()
	return recordedValues{sysctl.Settings{Values: sysctl.Forwarding(), Kernel: sysctl.Kernel{Files: fake}}, recorded(t, fake, state, "values")}
}

// mortal dies at a write, like a killed process: half the time before it.
type mortal struct {
	*bootstraptest.Kernel
	lives int
}

func (m *mortal) WriteFile(name string, value []byte) error {
	if m.lives--; m.lives < 0 {
		panic("killed")
	}
	err := m.Kernel.WriteFile(name, value)
	if m.lives--; m.lives < 0 {
		panic("killed")
	}
	return err
}

func TestSYS8_ForwardingStaysOffWhereARouteWouldBeLost(t *testing.T) {
	one := []sysctl.Setting{{Key: "net.ipv6.conf.lxc1.forwarding", Value: "1"}} // also drops every link's routes
	for name, tc := range map[string]struct {
		values  []sysctl.Setting
		prepare func(*bootstraptest.Kernel)
		text    string
		rest    string
	}{
		"refused":          {sysctl.Forwarding(), func(k *bootstraptest.Kernel) { k.Fail = refuse(syscall.EPERM, "net.ipv6.conf.eth0.accept_ra") }, "left off", "1"},
		"silently refused": {sysctl.Forwarding(), func(k *bootstraptest.Kernel) { k.Deafen("net.ipv6.conf.eth0.accept_ra") }, "left off", "1"},
		"off on purpose":   {sysctl.Forwarding(), func(k *bootstraptest.Kernel) { k.PutValue("net.ipv6.conf.eth0.accept_ra", "0") }, "accept_ra is 0", "0"},
		"one link's":       {one, func(k *bootstraptest.Kernel) { k.PutValue("net.ipv6.conf.eth0.accept_ra", "0") }, "accept_ra is 0", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			fake, state := bootstraptest.NewKernel("eth0", "lxc1"), filepath.Join(t.TempDir(), "state")
			fake.LearnRouter("eth0")
			tc.prepare(fake)
			s := recordedValues{sysctl.Settings{Values: tc.values, Kernel: sysctl.Kernel{Files: fake}}, recorded(t, fake, state, "values")}
			err := s.Apply(t.Context())
			require.ErrorContains(t, err, "eth0")
			require.ErrorContains(t, err, tc.text)
			require.Equal(t, "0", fake.Values()["net.ipv6.conf.all.forwarding"])
			require.Equal(t, "0", fake.Values()["net.ipv6.conf.lxc1.forwarding"])
			if len(tc.values) > 1 {
				require.Equal(t, tc.rest, fake.Values()["net.ipv4.ip_forward"], "the rest goes on, unless it is known beforehand")
			}
		})
	}
}

func TestADeniedReadIsNotADeniedWrite(t *testing.T) {
	fake := bootstraptest.NewKernel("eth0")
	fake.Fail = func(op, path string) error {
		if op == "read" && strings.HasSuffix(path, "ipv4/ip_forward") {
			return syscall.EACCES
		}
		return nil
	}
	_, err := forwarding(t, fake, filepath.Join(t.TempDir(), "state")).Check(t.Context())
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorContains(t, err, "read net.ipv4.ip_forward: permission denied (reading it needs root, and a /proc/sys that no LSM profile denies)")
	require.NotContains(t, err.Error(), "CAP_NET_ADMIN")
}

func TestSEC10_OnlyValuesOfANetworkNamespaceHaveAPlace(t *testing.T) {
	net := map[string]string{"/proc/sys/net": ""}
	place := sysctl.DropIn{}.Kinds()[0].Place
	for key, want := range map[string]map[string]string{"net.ipv4.ip_forward": net, "net.ipv4.conf.lo.rp_filter#1": net, "kernel.timer_migration": nil, "network.x": nil} {
		path, _ := place(key)
		require.Equal(t, len(want) > 0, path == "/proc/sys/net", key)
		require.Equal(t, len(want) == 0, path == "", key)
	}
	elsewhere := sysctl.DropIn{Dir: "/run/sysctl.d", Name: "x.conf", Settings: sysctl.Forwarding(), Kernel: sysctl.Kernel{Files: bootstraptest.NewKernel()}}
	wants, err := elsewhere.Wants(t.Context())
	require.NoError(t, err)
	for _, want := range wants.List {
		if place := want.Kind.Place; place != nil {
			path, _ := place(want.Object)
			require.Empty(t, path, "the values are not the host's")
		}
	}
	require.Equal(t, "/run/sysctl.d/x.conf", wants.List[len(wants.List)-1].Object)
}
