// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostpath_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/testledger"
	"github.com/slipway-dev/slipway/internal/testns"
)

// A program outside the node writes on the node, and nowhere else.
func TestHP3_OnAThrowAwayNode(t *testing.T) {
	node := bootstraptest.NewNode(t)
	const path = "/etc/slipway-test-acme/kubeconfig"
	plan := &bootstrap.Plan{
		Host:   hostns.Host{Proc: node.Proc()},
		Ledger: &ledger.Ledger{Dir: "/var/slipway-test", Agent: "acme", NoOwner: true},
		Steps: []bootstrap.Step{{Name: "kubeconfig", Wants: hostpath.Content{
			Path: path, Bytes: []byte("ours"), UID: 7, GID: 8, Mode: 0o440, Parents: true, Secret: true,
		}}},
	}
	there := func() (content []byte, info os.FileInfo) {
		_ = node.Do(t.Context(), func(context.Context) error {
			content, _ = os.ReadFile(path)
			info, _ = os.Lstat(path)
			return nil
		})
		return content, info
	}
	report, err := plan.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, bootstrap.Changed, report.Results[0].Status)
	content, info := there()
	require.Equal(t, "ours", string(content))
	require.Equal(t, os.FileMode(0o440), info.Mode())
	require.NoFileExists(t, path, "this machine is another one")
	require.NoError(t, node.Do(t.Context(), func(context.Context) error {
		_, lock := os.Stat("/run/slipway.lock")
		_, journal := os.Stat("/var/slipway-test/ledger")
		return errors.Join(lock, journal)
	}), "they are on the host")
	report, err = plan.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, bootstrap.Unchanged, report.Results[0].Status)
	_, err = plan.RevertAll(t.Context())
	require.NoError(t, err)
	_, info = there()
	require.Nil(t, info)
}

func TestHP3_WhatIsMountedOrADeviceIsRefused(t *testing.T) {
	testns.Enter(t, testns.Mount)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/file", []byte("theirs"), 0o600))
	require.NoError(t, unix.Mount(dir+"/file", dir+"/file", "", unix.MS_BIND, ""))
	defer unix.Unmount(dir+"/file", unix.MNT_DETACH)
	j := testledger.Open(t, testledger.Dir(t))
	c := hostpath.Content{Path: dir + "/file", Bytes: []byte("ours"), Secret: true, Rewritten: true}
	err := testledger.Step{Wanter: c, Book: j}.Apply(t.Context())
	require.ErrorIs(t, err, unix.EBUSY)
	require.ErrorContains(t, err, "something is mounted on it: unmount that first")
	status, err := j.Status(t.Context())
	require.NoError(t, err)
	require.Empty(t, status.Records, "it was never ours")
	require.NoError(t, unix.Mkfifo(dir+"/pipe", 0o600))
	if err := unix.Mknod(dir+"/device", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); err != nil {
		testns.Skip(t, "mknod of a device: "+err.Error())
	}
	before := names(t, dir)
	for path, is := range map[string]string{"/pipe": "named pipe", "/device": "CharDevice"} {
		c.Path = dir + path
		require.ErrorContains(t, c.Apply(t.Context()), "host path "+c.Path+" is a "+is+", and must be a File: move it away")
	}
	require.Equal(t, before, names(t, dir))
}
