// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const (
	manyNames  = 300_000
	mostMemory = 64 << 10 // KiB
)

// confined runs the program on the node with 64 descriptors, and says how much
// memory it took at most, in KiB.
func (n *node) confined(args ...string) (o outcome, memory int) {
	n.t.Helper()
	measured := filepath.Join(n.work, "measured")
	var stdout, stderr bytes.Buffer
	cmd := n.Command("/usr/bin/time", append([]string{"-q", "-f", "%M", "-o", measured, "prlimit", "--nofile=64", binary}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	o = finish(n.t, cmd.Run, &stdout, &stderr)
	text, err := os.ReadFile(measured)
	require.NoError(n.t, err)
	memory, err = strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(n.t, err, string(text))
	return o, memory
}

// many makes a directory with 300,000 files.
func (n *node) many(dir, pattern string) {
	n.t.Helper()
	n.do(func() error {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		at, err := os.Open(dir)
		if err != nil {
			return err
		}
		defer at.Close()
		for i := range manyNames {
			if err := unix.Mknodat(int(at.Fd()), fmt.Sprintf(pattern, i), unix.S_IFREG|0o644, 0); err != nil {
				return err
			}
		}
		return nil
	})
}

// Whatever is found in the place of a file: a run ends with one line that names
// it, in little memory.
func TestSEC5_SEC6_WhatIsNoFileIsNamed(t *testing.T) {
	n := newNode(t)
	n.shell(`mkdir /run/bad && cd /run/bad && mkfifo fifo && truncate -s 200G sparse && mkdir directory &&
		ln -s /dev/zero device && ln -s sparse link`)
	says := map[string]string{
		"fifo": "is a FIFO", "sparse": "larger than", "directory": "is a directory", "device": "is a device",
		"link": "larger than",
	}
	for name, c := range map[string]struct {
		place string // of what is no file; "": it is named itself
		args  []string
		kinds string
	}{
		"--config":   {"", []string{"check", "--config", "/run/bad/KIND"}, "fifo sparse directory device link"},
		"--cni-conf": {"", []string{"install-cni", "--cni-conf", "/run/bad/KIND"}, "fifo sparse directory device link"},
		"file":       {"", []string{"build-config", "--source", "file:/run/bad/KIND", "--dest", "/run/agent"}, "fifo sparse directory device link"},
		"plugin":     {"/run/plugins/p", []string{"install-cni", "--plugins", "/run/plugins"}, "sparse"},
		"value":      {"/run/values/v", []string{"build-config", "--source", "dir:/run/values", "--dest", "/run/agent"}, "fifo sparse device"},
		"gate":       {"/run/gate/cni-uninstall", []string{"uninstall-cni", "--config-dir", "/run/gate"}, "fifo sparse directory device"},
		"pid file":   {"/run/cilium/cilium.pid", []string{"uninstall", "--any-owner"}, "fifo directory"},
		"lock":       {"/run/slipway.lock", []string{"mount-cgroup"}, "fifo directory device"},
		"journal":    {"/var/lib/slipway/journal.json", []string{"uninstall"}, "fifo sparse directory device"},
		"owner lock": {"/var/lib/slipway/lock", []string{"mount-cgroup", "--owner", "me"}, "fifo directory device"},
		"data":       {"/run/agent/..data", []string{"build-config", "--source", "file:" + n.source, "--dest", "/run/agent"}, "directory"},
	} {
		for kind := range strings.FieldsSeq(c.kinds) {
			t.Run(name+" "+kind, func(t *testing.T) {
				n.shell(`rm -rf /run/plugins /run/values /run/gate /run/cilium /run/agent /run/slipway.lock /var/lib/slipway
					mkdir /run/plugins && touch /run/plugins/loopback`)
				if c.place != "" {
					n.shell(`umask 077; mkdir -p ` + filepath.Dir(c.place) + ` && cp -a /run/bad/` + kind + ` ` + c.place)
				}
				args := strings.Split(strings.ReplaceAll(strings.Join(c.args, "\n"), "KIND", kind), "\n")
				o, memory := n.confined(args...)
				require.Equal(t, 1, o.code, o.stdout+o.stderr)
				require.Equal(t, 1, strings.Count(o.stderr, "\n"), o.stderr)
				if c.place == "" || name == "value" || name == "gate" || name == "pid file" {
					require.Contains(t, o.stderr, says[kind])
				}
				require.Contains(t, o.stderr, filepath.Base(cmp.Or(c.place, kind)))
				require.Less(t, memory, mostMemory)
				t.Logf("%s%d KiB", o.stderr, memory)
			})
		}
	}
}

// Directories of 300,000 entries: each run does its work, or ends with one line,
// in little memory.
func TestSEC6_ManyEntries(t *testing.T) {
	n := newNode(t)
	n.many("/run/many", "%06d.conf")
	n.shell(`mkdir -p /var/lib/slipway /etc/cni/net.d /opt/cni/bin /etc/sysctl.d /sys/fs/bpf && chmod 700 /var/lib/slipway`)
	for name, c := range map[string]struct {
		dir  string // where they are
		args []string
		code int
		says string // in the one line; empty: there is none
	}{
		"values":        {"/run/values", []string{"build-config", "--source", "dir:/run/values", "--dest", "/run/agent"}, 1, "/run/values holds more than"},
		"data":          {"/run/agent", []string{"build-config", "--source", "file:" + n.source, "--dest", "/run/agent"}, 1, "/run/agent"},
		"plugins":       {"/run/plugins", []string{"install-cni", "--plugins", "/run/plugins"}, 1, "/run/plugins holds more than"},
		"chain":         {"/etc/cni/net.d", []string{"install-cni", "--cni-chain", "*"}, 1, "/etc/cni/net.d holds more than"},
		"exclusive":     {"/etc/cni/net.d", []string{"install-cni", "--plugins", n.plugins, "--cni-conf", n.conf, "--cni-exclusive"}, 1, "/etc/cni/net.d holds more than"},
		"configuration": {"/etc/cni/net.d", []string{"install-cni", "--plugins", n.plugins, "--cni-conf", n.conf}, 0, ""},
		"bin":           {"/opt/cni/bin", []string{"install-cni", "--plugins", n.plugins, "--cni-conf", n.conf}, 0, ""},
		"sysctl.d":      {"/etc/sysctl.d", []string{"check", "--only", "sysctl"}, 2, "/etc/sysctl.d holds more than"},
		"bpffs":         {"/sys/fs/bpf", []string{"check", "--only", "bpffs"}, 2, ""},
		"state":         {"/var/lib/slipway", []string{"mount-cgroup", "/run/cgroup"}, 0, ""},
		"netns":         {"/run/netns", []string{"cleanup", "--dry-run", "--all-state"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n.shell(`rm -rf /run/agent; mkdir -p /run/values /run/agent /run/plugins /run/netns
				mount --bind /run/many ` + c.dir)
			defer n.shell(`umount ` + c.dir + `; find /run/many -newer /run/values -type f -name '[!0-9]*' -delete`)
			o, memory := n.confined(c.args...)
			t.Logf("%d %s%s %d KiB", o.code, o.stdout, o.stderr, memory)
			require.Equal(t, c.code, o.code, o.stdout+o.stderr)
			require.Less(t, memory, mostMemory)
			require.Contains(t, o.stderr, c.says)
			if c.says != "" {
				require.Equal(t, 1, strings.Count(o.stderr, "\n"), o.stderr)
			}
		})
	}
}
