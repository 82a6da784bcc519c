// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Bad input ends with exit status 1, or 64 for a meaningless flag value, and with one clear
// line that names the object and the remedy; the node is unchanged.
func TestBadInput(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		prepare string // run on the node beforehand
		args    func(n *node) []string
		says    []string // all on standard error
		lines   int      // number of lines; 0 means one
		usage   int      // exit status 64, and so many more lines
	}{
		"unknown source kind": {
			args: func(n *node) []string { return []string{"apply", "--source", "configmap:kube-system/x"} },
			says: []string{`"configmap"`, "config-map", "cilium-node-config", "node", "dir", "file", "env"}, usage: 2,
		},
		"bad YAML": {
			prepare: `printf 'good: x\na: b: c\n' > /run/bad.yaml`,
			args:    func(n *node) []string { return []string{"apply", "--source", "file:/run/bad.yaml"} },
			says:    []string{"config", "/run/bad.yaml", "line 2"},
		},
		"source missing": {
			args: func(n *node) []string { return []string{"apply", "--source", "file:/run/missing.yaml"} },
			says: []string{"config", "/run/missing.yaml", "does not exist", "correct --source"},
		},
		"cgroup path is a file": {
			prepare: `touch /run/file`,
			args:    func(n *node) []string { return []string{"mount-cgroup", "/run/file"} },
			says:    []string{"cgroup", "/run/file", "directory"},
		},
		"tmpfs on the bpffs path": {
			prepare: `mkdir /run/bpf && mount -n -t tmpfs tmpfs /run/bpf`,
			args:    func(n *node) []string { return []string{"mount-bpffs", "/run/bpf"} },
			says:    []string{"bpffs", "/run/bpf", "tmpfs"},
			lines:   2, // and names the flags that help
		},
		"configuration is no JSON": {
			prepare: `printf '{"name": oops}' > /run/conf`,
			args:    func(n *node) []string { return []string{"install-cni", "--cni-conf", "/run/conf"} },
			says:    []string{"cni", "05-cilium.conflist", "line 1", "column 10"},
		},
		"plugin missing": {
			args:  func(n *node) []string { return []string{"install-cni", "--cni-conf", n.conf} },
			says:  []string{"cni", "test-cni", "/opt/cni/bin", "missing"},
			lines: 2,
		},
		"folder of plugins missing": {
			args: func(n *node) []string { return []string{"install-cni", "--plugins", "/run/missing"} },
			says: []string{"--plugins", "/run/missing", "of this container's image"},
		},
		"state directory cannot be made": {
			args: func(n *node) []string { return []string{"apply", "--state-dir", "/run/missing/state"} },
			says: []string{"/run/missing", "create"},
		},
		"state directory that an apply could not make": {
			args: func(n *node) []string { return []string{"check", "--state-dir", "/run/missing/state"} },
			says: []string{"/run/missing", "create"},
		},
		"state directory read-only": {
			prepare: `mkdir /run/ro && mount -n -t tmpfs -o ro tmpfs /run/ro`,
			args:    func(n *node) []string { return []string{"apply", "--state-dir", "/run/ro/state"} },
			says:    []string{"/run/ro/state", "read-only"},
		},
		"host's proc not there": {
			args: func(n *node) []string { return []string{"mount-bpffs", "--host-proc", "/run/hostproc"} },
			says: []string{"/run/hostproc/1", "/proc"},
		},
		"sysctl key that climbs": {
			args: func(n *node) []string { return []string{"apply", "--sysctl", "net/../../etc/passwd = x"} },
			says: []string{"--sysctl", "net/../../etc/passwd", ".."}, usage: 1,
		},
		"sysctl drop-in is no file name": {
			args: func(n *node) []string { return []string{"sysctlfix", "--sysctl-config-file", "../evil.conf"} },
			says: []string{"sysctl", "../evil.conf"}, usage: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			if tc.prepare != "" {
				n.shell(tc.prepare)
			}
			before := n.state()
			o := n.run(tc.args(n)...)
			want := 1
			if tc.usage > 0 {
				want = 64
			}
			require.Equal(t, want, o.code, o.stderr)
			require.Equal(t, max(tc.lines, 1)+tc.usage, strings.Count(o.stderr, "\n"), o.stderr)
			for _, part := range tc.says {
				require.Contains(t, o.stderr, part)
			}
			require.Empty(t, before.Diff(n.state()))
			t.Log(strings.TrimSpace(o.stderr))
		})
	}
}

// A key that would lead out of the directory is reported and left out, and never used as a
// path.
func TestCFG5_AKeyThatIsAPathIsReportedAndLeftOut(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell(`printf '"../evil": x\ngood: y\n' > /run/keys.yaml`)
	o := n.run("build-config", "--source", "file:/run/keys.yaml", "--dest", "/run/agent/config")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stderr, "../evil")
	require.Contains(t, o.stderr, "file:/run/keys.yaml")
	require.Equal(t, "y", n.read("/run/agent/config/good"))
	require.Empty(t, n.shell("find / -xdev -name 'evil*' -not -path '/proc/*' -not -path '/tmp/*' -not -path '/root/*' -path '/run/*'"))
}

func TestWithoutRootItSaysSo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("this test is not run by root itself")
	}
	copied := filepath.Join(os.TempDir(), "nodeinit-unprivileged-"+filepath.Base(t.TempDir()))
	raw, err := os.ReadFile(binary)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(copied, raw, 0o755))
	t.Cleanup(func() { os.Remove(copied) })
	for _, command := range []string{"apply", "uninstall", "mount-cgroup", "mount-bpffs", "sysctlfix", "install-cni", "uninstall-cni", "demo"} {
		var stderr bytes.Buffer
		cmd := exec.Command(copied, command)
		cmd.Dir, cmd.Stderr = "/", &stderr
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		err := cmd.Run()
		require.Error(t, err, command)
		require.Equal(t, 1, cmd.ProcessState.ExitCode(), command)
		require.Contains(t, stderr.String(), "needs root", command)
		require.Contains(t, stderr.String(), "sudo", command)
		require.Equal(t, 1, strings.Count(stderr.String(), "\n"), command)
	}
}

// A pod's status shows the end of its log.
func TestTheLastLineNamesTheCause(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no program":    {[]string{"run", "--", "/run/none"}, "nodeinit: exec: "},
		"no API server": {[]string{"apply", "--source", "config-map:kube-system/agent", "--k8s-api-server-urls", "http://127.0.0.1:1", "--timeout", "200ms"}, "nodeinit: step config: resolve: read source config-map:kube-system/agent: "},
		"no ConfigMap":  {[]string{"apply", "--source", "dir:/run/missing"}, "nodeinit: step config: resolve: read source dir:/run/missing: directory /run/missing: source does not exist (create it, or correct --source, which names it)"},
	} {
		t.Run(name, func(t *testing.T) {
			o := n.run(tc.args...)
			require.NotZero(t, o.code)
			lines := strings.Split(strings.TrimSpace(o.stderr), "\n")
			require.True(t, strings.HasPrefix(lines[len(lines)-1], tc.want), lines[len(lines)-1])
		})
	}
	o := n.run("apply", "--source", "config-map:kube-system/agent", "--k8s-api-server-urls", "http://127.0.0.1:1", "--timeout", "1s", "--k8s-retry-spread", "100ms")
	require.Contains(t, o.stderr, "the last: dial tcp 127.0.0.1:1: connect: connection refused")
	require.Equal(t, 1, strings.Count(o.stderr, "the API server does not answer"), "not once for each attempt: %s", o.stderr)
}
