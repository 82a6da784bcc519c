// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostpath_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/journaltest"
	"github.com/slipway-dev/slipway/internal/testns"
)

func TestHP3_ConformOnTheKernel(t *testing.T) {
	for name, c := range contents {
		t.Run(name, func(t *testing.T) {
			testns.Enter(t, testns.Mount) // each subtest has its own thread
			require.NoError(t, unix.Mount("tmpfs", "/run", "tmpfs", 0, "mode=755"))
			c.Path = "/run/" + c.Path
			c.UID, c.GID = 1000, 1001
			bootstraptest.Conform(t, func() bootstrap.Action { return c }, hostpath.Handler{})
		})
	}
}

// A program outside the node writes on the node, and nowhere else.
func TestHP3_OnAThrowAwayNode(t *testing.T) {
	node := bootstraptest.NewNode(t)
	const path = "/etc/slipway-test-acme/kubeconfig"
	plan := &bootstrap.Plan{
		Host:    hostns.Host{Proc: node.Proc()},
		Journal: &journal.Node{Dir: "/var/slipway-test", Agent: "acme", NoOwner: true, Handlers: []journal.Handler{hostpath.Handler{}}},
		Steps: []bootstrap.Step{{Name: "kubeconfig", Action: hostpath.Content{
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
	j := journaltest.Temp(t, hostpath.Handler{})
	c := written{hostpath.Content{Path: dir + "/file", Bytes: []byte("ours"), Secret: true, Rewritten: true}, j}
	err := c.Apply(t.Context())
	require.ErrorIs(t, err, unix.EBUSY)
	require.ErrorContains(t, err, "something is mounted on it: unmount that first")
	require.Empty(t, journaltest.Entries(t, j), "it was never ours")
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

func TestHP3_ErrorsNameTheRemedy(t *testing.T) {
	testns.Enter(t, testns.Mount)
	dir := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_RDONLY, ""))
	defer unix.Unmount(dir, unix.MNT_DETACH)
	c := hostpath.Content{Path: dir + "/a/b/x", Bytes: []byte("ours"), Parents: true}
	for _, err := range []error{c.CheckPermission(t.Context()), c.Apply(t.Context())} {
		require.ErrorIs(t, err, unix.EROFS)
		require.ErrorContains(t, err, dir+"/a")
		require.ErrorContains(t, err, "mounted read-write")
	}
}

// A link is followed neither above the file nor in its place.
func TestHP3_SEC1_ALinkOfOthersIsNotFollowed(t *testing.T) {
	testns.Root(t)
	const stranger = 65534
	dir := t.TempDir()
	for _, name := range []string{"/shared", "/host"} {
		require.NoError(t, os.Mkdir(dir+name, 0o755))
	}
	require.NoError(t, os.WriteFile(dir+"/host/file", []byte("theirs"), 0o600))
	require.NoError(t, os.Symlink(dir+"/host", dir+"/shared/link"))
	require.NoError(t, os.Symlink(dir+"/host/file", dir+"/shared/file"))
	require.NoError(t, os.Chown(dir+"/shared", stranger, stranger))
	for path, parents := range map[string]bool{"/shared/link/file": false, "/shared/link/a/file": true} {
		c := hostpath.Content{Path: dir + path, Bytes: []byte("ours"), Parents: parents}
		require.ErrorContains(t, c.Apply(t.Context()), "a symbolic link that others may change", path)
	}
	require.NoError(t, hostpath.Content{Path: dir + "/shared/file", Bytes: []byte("ours")}.Apply(t.Context()))
	require.Equal(t, []string{dir + "/host", dir + "/host/file"}, names(t, dir+"/host"))
	content, err := os.ReadFile(dir + "/host/file")
	require.NoError(t, err)
	require.Equal(t, "theirs", string(content))
}
