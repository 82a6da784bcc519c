// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/fsmount"
	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// A directory that others may write to, such as an emptyDir, does not decide where to
// mount.
func TestSEC1_ALinkOfOthersIsNotFollowed(t *testing.T) {
	const stranger = 65534
	dir := directory(t)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "elsewhere"), 0o755))
	shared := filepath.Join(dir, "shared")
	require.NoError(t, os.Mkdir(shared, 0o755))
	for link, target := range map[string]string{
		"relative": "../elsewhere", "absolute": filepath.Join(dir, "elsewhere"), "dangling": "../nowhere",
		"of-the-host": "/proc/1/root" + filepath.Join(dir, "elsewhere"),
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(shared, link)))
	}
	require.NoError(t, os.Chown(shared, stranger, stranger))
	for _, link := range []string{"relative", "absolute", "dangling", "of-the-host"} {
		for _, below := range []string{"", "below"} {
			path := filepath.Join(shared, link, below)
			_, err := fsmount.Look(fsmount.Real{}, path)
			require.ErrorIs(t, err, durable.ErrUntrusted, path)
			require.ErrorContains(t, err, path)
		}
	}
	require.NoError(t, os.Chown(shared, 0, 0))
	p, err := fsmount.Look(fsmount.Real{}, filepath.Join(shared, "relative"))
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "elsewhere"), p.Path)
}

// Only the mount that was looked at is unmounted, even if another is in its place by
// then.
func TestSEC4_OnlyTheMountThatIsMeantIsUnmounted(t *testing.T) {
	var k fsmount.Real
	path := filepath.Join(directory(t), "point")
	require.NoError(t, os.Mkdir(path, 0o755))
	for _, source := range []string{"ours", "theirs"} {
		require.NoError(t, k.Mount(source, path, "tmpfs", options))
		err := k.UnmountOnly(path, func(m mountinfo.Mount) bool { return m.Point == path && m.Source == "ours" })
		if source == "ours" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, unix.EINVAL)
		require.Len(t, on(t, path), 1)
	}
}

// Nor is it reached through a link that is there by then.
func TestSEC4_NothingIsUnmountedThroughALinkOfOthers(t *testing.T) {
	const stranger = 65534
	dir := directory(t)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "root", "bpf"), 0o755))
	require.NoError(t, unix.Mount("bpf", filepath.Join(dir, "root", "bpf"), "bpf", 0, ""))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "shared"), 0o755))
	require.NoError(t, os.Symlink("../root", filepath.Join(dir, "shared", "link")))
	require.NoError(t, os.Chown(filepath.Join(dir, "shared"), stranger, stranger))
	require.ErrorIs(t, fsmount.Real{}.Unmount(filepath.Join(dir, "shared", "link", "bpf")), durable.ErrUntrusted)
	require.Len(t, on(t, filepath.Join(dir, "root", "bpf")), 1)
}
