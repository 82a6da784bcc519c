// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/testns"
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

// systemd tries to read whatever has that name in the first directory, regular file or not.
func TestSYS5_WhatIsNoFileMasksToo(t *testing.T) {
	if runtime.GOOS == "windows" {
		testns.Skip(t, "makes links")
	}
	for name, tc := range map[string]struct {
		mask func(path string) error
		text string // of the error
	}{
		"folder":              {func(path string) error { return os.Mkdir(path, 0o755) }, "directory"},
		"link to a folder":    {func(path string) error { return os.Symlink("..", path) }, "directory"},
		"link to nothing":     {func(path string) error { return os.Symlink("nowhere", path) }, ""},
		"link to /dev/null":   {func(path string) error { return os.Symlink(os.DevNull, path) }, ""},
		"empty file":          {func(path string) error { return os.WriteFile(path, nil, 0o644) }, ""},
		"nothing but a space": {func(path string) error { return os.WriteFile(path, []byte(" "), 0o644) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			higher, lower := filepath.Join(root, "etc"), filepath.Join(root, "usr")
			for _, dir := range []string{higher, lower} {
				require.NoError(t, os.Mkdir(dir, 0o755))
			}
			masked := filepath.Join(lower, "50-x.conf")
			require.NoError(t, os.WriteFile(masked, []byte("net.x = 1\n"), 0o644))
			require.NoError(t, tc.mask(filepath.Join(higher, "50-x.conf")))
			all, err := sysctl.Effective(higher, lower)
			require.Empty(t, all)
			if tc.text == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, filepath.Join(higher, "50-x.conf")+" is a "+tc.text)
			}
			require.NoError(t, os.RemoveAll(filepath.Join(higher, "50-x.conf")))
			all, err = sysctl.Effective(higher, lower)
			require.NoError(t, err)
			require.Len(t, all, 1)
		})
	}
}

func TestSYS5_SeparatorsThatSayNothing(t *testing.T) {
	for line, want := range map[string]sysctl.Key{
		"/net/ipv4/ip_forward":        "net.ipv4.ip_forward",
		"//net//ipv4///ip_forward//":  "net.ipv4.ip_forward",
		".net..ipv4.ip_forward.":      "net.ipv4.ip_forward",
		"/net/./ipv4/ip_forward/.":    "net.ipv4.ip_forward",
		"/net/ipv4/conf/eth0.100/tag": "net.ipv4.conf.eth0/100.tag",
		"/net/ipv4/conf/lxc*//tag":    "net.ipv4.conf.lxc*.tag",
		"/../etc/passwd":              "",
		"net//..//x":                  "",
		"//":                          "",
		".":                           "",
		"/x.y/z":                      "",
	} {
		all, err := sysctl.Parse(strings.NewReader("-" + line + " = 1\n"))
		if want == "" {
			require.ErrorContains(t, err, "not a sysctl key", line)
			continue
		}
		require.NoError(t, err, line)
		require.Equal(t, []sysctl.Setting{{Key: want, Value: "1", IgnoreFailure: true}}, all, line)
	}
}

func TestSYS5_WhatSystemdMayReadOtherwiseIsSaid(t *testing.T) {
	for content, want := range map[string]string{
		"net.x = 1\n# y\rnet.ipv4.ip_forward = 0\n": ":2 has a carriage return within a line",
		"net.x = 1\x00net.y = 2\n":                  ":1 has a NUL",
		"\n\nnet.x\v= 1\n\vnet.y = 2\n":             ":3 has an unusual white space",
		"net.x =\u00a01\n":                          ":1 has an unusual white space",
		"net.x = 1\r\n# ä\xff\r\nnet.y = 2\r":       "",
	} {
		n := newNode(t)
		other := n.put(t, "usr/50-x.conf", content)
		var odd []string
		advice, _ := n.dropIn().Advise(t.Context())
		for _, line := range advice {
			if strings.HasPrefix(line, other) {
				odd = append(odd, line)
			}
		}
		_, err := sysctl.Effective(filepath.Dir(other))
		if want == "" {
			require.Empty(t, odd, "%q", content)
			require.NoError(t, err)
			continue
		}
		require.Equal(t, []string{other + want + ", which systemd may read differently: replace it with a space or a line break"}, odd, "%q", content)
		require.ErrorContains(t, err, odd[0])
	}
}
