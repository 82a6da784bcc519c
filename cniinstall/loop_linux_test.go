// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/reconcile"
	"github.com/slipway-dev/slipway/cniinstall"
)

const slow = 5 * time.Minute // far longer than anything here takes on any machine

// stepOf is the one step of a plan.
func stepOf(i cniinstall.Install) bootstrap.Step { return bootstrap.Step{Name: step, Wants: i} }

// keeping is an installation that a loop keeps.
type keeping struct {
	node
	errs chan error // once for each run and repair
}

// inOwnTime runs a test on a node whose installation a loop keeps, with a clock that advances
// only while every goroutine waits, so that a busy machine makes no repair late.
func inOwnTime(t *testing.T, prepare func(node, *cniinstall.Install), test func(t *testing.T, k keeping)) {
	synctest.Test(t, func(t *testing.T) {
		k := keeping{newNode(t), make(chan error, 1000)}
		i := k.install().Install
		prepare(k.node, &i)
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		loop := reconcile.Loop{Plan: k.planOf(cniinstall.Uninstall{}, stepOf(i)), Interval: 24 * time.Hour, Done: func(_ *bootstrap.Report, err error) { k.errs <- err }}
		go func() { ended <- loop.Run(ctx) }()
		k.isTold(nil)
		time.Sleep(time.Minute) // all is seen as it is
		test(t, k)
		time.Sleep(time.Minute)
		require.Empty(t, k.errs)
		cancel()
		require.NoError(t, <-ended)
		requireNoTemp(t, k.root)
	})
}

// isTold waits for the next run or repair.
func (k keeping) isTold(want error) {
	k.t.Helper()
	select {
	case err := <-k.errs:
		require.ErrorIs(k.t, err, want)
	case <-time.After(time.Hour):
		require.Fail(k.t, "nothing happens")
	}
}

// repairs breaks something, and waits until it is repaired.
func (k keeping) repairs(what string, damage func()) {
	k.t.Helper()
	begin := time.Now()
	damage()
	k.isTold(nil)
	require.Less(k.t, time.Since(begin), time.Second, what)
}

// The plugins and the configuration, and every directory on their way, links included: the
// replacement is watched. Beside them, others may write what they like.
func TestCNI7_PluginsAndConfigurationAreRepaired(t *testing.T) {
	inOwnTime(t, func(n node, _ *cniinstall.Install) {
		require.NoError(t, os.MkdirAll(n.root+"/real/1", 0o755))
		require.NoError(t, os.MkdirAll(n.root+"/real/2", 0o755))
		require.NoError(t, os.Mkdir(n.root+"/etc", 0o755))
		require.NoError(t, os.Symlink("../real/1", n.root+"/etc/cni"))
	}, func(t *testing.T, k keeping) {
		link := k.root + "/etc/cni"
		for what, damage := range map[string]func() error{
			"edited":                 func() error { return os.WriteFile(k.confFile(), []byte("edited"), 0o600) },
			"moved away":             func() error { return os.Rename(k.confFile(), k.conf+"/away") },
			"plugin edited":          func() error { return os.WriteFile(k.plugin("cilium-cni"), []byte("#!/bin/sh"), 0o755) },
			"mode of plugin":         func() error { return os.Chmod(k.plugin("cilium-cni"), 0o644) },
			"plugin removed":         func() error { return os.Remove(k.plugin("loopback")) },
			"directory replaced":     func() error { return exchange(k.conf) },
			"its directory replaced": func() error { return exchange(k.bin) },
			"one above replaced":     func() error { return exchange(k.root + "/opt") },
			"all of it removed":      func() error { return os.RemoveAll(k.root + "/opt") },
			"the link leads elsewhere": func() error {
				_ = os.Symlink("../real/2", link+".new")
				return os.Rename(link+".new", link)
			},
		} {
			k.repairs(what, func() { require.NoError(t, damage()) })
			requireContent(t, k.confFile(), agentConf, 0o600)
			requireContent(t, k.plugin("cilium-cni"), script("0.3.1", "0.4.0", "1.0.0"), 0o755)
			require.FileExists(t, k.plugin("loopback"))
			write(t, k.conf+"/other-kubeconfig", what, 0o600)
			write(t, k.conf+"/99-other.conflist", what, 0o600)
			time.Sleep(time.Minute)
			require.Empty(t, k.errs)
		}
	})
}

// exchange replaces a directory with an empty one.
func exchange(dir string) error {
	if err := os.Mkdir(dir+".new", 0o755); err != nil {
		return err
	}
	if err := unix.Renameat2(unix.AT_FDCWD, dir+".new", unix.AT_FDCWD, dir, unix.RENAME_EXCHANGE); err != nil {
		return err
	}
	return os.RemoveAll(dir + ".new")
}

// A configuration that another CNI adds is set aside, also one that was there before and was
// changed.
func TestCNI5_CNI7_ExclusiveIsKept(t *testing.T) {
	inOwnTime(t, func(_ node, i *cniinstall.Install) { i.Exclusive = true }, func(t *testing.T, k keeping) {
		for _, content := range []string{"other", "other again"} {
			k.repairs("added", func() { write(t, k.conf+"/00-other.conflist", content, 0o644) })
			require.NoFileExists(t, k.conf+"/00-other.conflist")
			requireContent(t, k.conf+"/00-other.conflist.cilium_bak", content, 0o644)
		}
	})
}

// A chained configuration follows its target, even if another program of the same owner made an
// update.
func TestCNI4_CNI7_ChainFollowsTheOther(t *testing.T) {
	other := func(n node, mtu int) {
		write(n.t, n.conf+"/10-other.conflist", fmt.Sprintf(
			`{"cniVersion":"0.3.1","name":"other","plugins":[{"type":"cilium-cni"},{"type":"bridge","mtu":%d}]}`, mtu), 0o644)
	}
	var chained cniinstall.Install
	inOwnTime(t, func(n node, i *cniinstall.Install) {
		n.source("bridge", script("0.3.1", "1.0.0"))
		other(n, 1)
		i.Config = cniinstall.Chained{Plugin: json.RawMessage(`{"type":"cilium-cni","mine":true}`)}
		chained = *i
	}, func(t *testing.T, k keeping) {
		follows := func(mtu int) {
			t.Helper()
			raw := read(t, k.confFile())
			require.Contains(t, raw, fmt.Sprintf(`"mtu": %d`, mtu))
			require.Contains(t, raw, `"mine": true`)
		}
		k.repairs("changed", func() { other(k.node, 2) })
		follows(2)
		other(k.node, 3) // another program is faster
		_, err := k.planOf(cniinstall.Uninstall{}, stepOf(chained)).Apply(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.Empty(t, k.errs)
		follows(3)
		require.NoError(t, os.Remove(k.conf+"/10-other.conflist"))
		k.isTold(cniinstall.ErrTargetMissing)
		k.repairs("it is back", func() { other(k.node, 4) })
		follows(4)
	})
}
