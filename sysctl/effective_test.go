// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/sysctl"
)

func TestSYS5_Effective(t *testing.T) {
	root := t.TempDir()
	dirs := []string{filepath.Join(root, "etc"), filepath.Join(root, "run"), filepath.Join(root, "usr"), filepath.Join(root, "none")}
	for name, content := range map[string]string{
		"usr/10-a.conf":      "a.one = 1\na.two = 1\na.gone = 1\n",
		"usr/20-b.conf":      "b.hidden = 1\n",
		"run/20-b.conf":      "b.shown = 1\na.one = 2\n",
		"usr/30-masked.conf": "c.masked = 1\n",
		"etc/30-masked.conf": "",
		"usr/40-null.conf":   "c.null = 1\n",
		"etc/05-first.conf":  "a/two = 0\nbad line\n-a.*\n",
		"etc/README":         "x.y = 1\n",
		"etc/.hidden.conf":   "x.z = 1\n",
		"run/dir.conf/x":     "",
		"usr/90-last.conf":   "-a.gone\nb.shown = 1\n",
	} {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	if runtime.GOOS == "windows" {
		require.NoError(t, os.Remove(filepath.Join(root, "usr/40-null.conf")))
	} else {
		require.NoError(t, os.Symlink("/dev/null", filepath.Join(root, "etc/40-null.conf")))
		require.NoError(t, os.Symlink("nowhere", filepath.Join(root, "etc/20-b.conf")))
	}

	all, err := sysctl.Effective(dirs...)
	require.ErrorContains(t, err, filepath.Join(root, "etc/05-first.conf")+": line 2: ")
	var got []string
	for _, a := range all {
		rel, err := filepath.Rel(root, a.File)
		require.NoError(t, err)
		got = append(got, fmt.Sprintf("%s:%d %s", filepath.ToSlash(rel), a.Line, a.Setting))
	}
	require.Equal(t, []string{
		"etc/05-first.conf:3 -a.*",
		"usr/10-a.conf:2 a.two = 1",
		"run/20-b.conf:1 b.shown = 1",
		"run/20-b.conf:2 a.one = 2",
		"usr/90-last.conf:1 -a.gone",
	}, got)
}
