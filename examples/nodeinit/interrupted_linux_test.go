// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/cri/critest"
)

// interrupted applies for the owner pod-1 with JSON output, and asks it to end when it waits
// for something and then has been called.
func (n *node) interrupted(then func(pid int), args ...string) outcome {
	n.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := n.Command(binary, n.args("apply", append(args, "--output", "json", "--owner", "pod-1")...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.Stdout = &stdout
	pipe, err := cmd.StderrPipe()
	require.NoError(n.t, err)
	require.NoError(n.t, cmd.Start())
	for !strings.Contains(stderr.String(), "msg=waiting") {
		_, err := io.CopyN(&stderr, pipe, 1)
		require.NoError(n.t, err, &stderr)
	}
	then(cmd.Process.Pid)
	require.NoError(n.t, cmd.Process.Signal(unix.SIGTERM))
	_, err = stderr.ReadFrom(pipe)
	require.NoError(n.t, err)
	return finish(n.t, cmd.Wait, &stdout, &stderr)
}

// locked holds a lock, such as the node's, until it is told to release it.
func (n *node) locked(file string) (release func()) {
	n.t.Helper()
	n.shell("touch " + file + " && chmod 600 " + file)
	hold := n.Command("flock", file, "sh", "-c", "echo held; read end")
	in, err := hold.StdinPipe()
	require.NoError(n.t, err)
	out, err := hold.StdoutPipe()
	require.NoError(n.t, err)
	require.NoError(n.t, hold.Start())
	_, err = io.ReadFull(out, make([]byte, len("held\n")))
	require.NoError(n.t, err)
	return func() {
		require.NoError(n.t, in.Close())
		_ = hold.Wait() // sh's read has failed
	}
}

// All that was done before SIGTERM is in the report and in the journal, with what was
// interrupted and what did not run, and the next apply does the rest.
func TestPLAN4_AnInterruptedApplyReportsHowFarItCame(t *testing.T) {
	t.Parallel()
	const theirs = `{"cniVersion":"1.0.0","name":"theirs","plugins":[{"type":"bridge"}]}`
	for name, c := range map[string]struct {
		args     []string
		hangs    bool
		failed   string
		says     string
		statuses map[string]string
		recorded []string // kinds
	}{
		"at a gate": {
			args: []string{"--wait-for-kube-proxy", "10m"}, failed: "kube-proxy", says: "wait for kube-proxy's rules: last seen: ",
			statuses: map[string]string{"config": "not-run", "cgroup": "not-run", "bpffs": "not-run", "cni": "not-run"},
		},
		"in its last step": {
			args: []string{"--wait-loaded", "10m"}, failed: "cni-loaded", says: `it has loaded "theirs"`,
			statuses: map[string]string{"config": "changed", "cgroup": "changed", "bpffs": "changed", "cni": "changed"},
			recorded: []string{"config/layout", "cgroup/mount", "bpffs/mount", "cni/file"},
		},
		"in a system call that does not return": {
			args: []string{"--bpf-root", "/run/dead/bpf"}, hangs: true, failed: "bpffs", says: "1s later something has not ended by itself (at /run/dead/bpf)",
			statuses: map[string]string{"config": "changed", "cgroup": "changed", "sysctl": "changed", "cni": "not-run"},
			recorded: []string{"config/layout", "cgroup/mount", "sysctl/file"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			then := func(int) {}
			if c.hangs { // only once all has been checked
				release := n.locked("/run/slipway.lock")
				then = func(pid int) { n.dead("/run/dead"); release(); n.awaitCall(pid) }
			} else {
				n.runtime("/run/containerd/containerd.sock", critest.Runtime{Info: critest.ContainerdLoaded([]byte(theirs), "/etc/cni/net.d", "/opt/cni/bin")})
			}
			before := n.state()
			o := n.interrupted(then, c.args...)
			require.Equal(t, 1, o.code, o.stderr)
			r := o.report(t)
			require.Equal(t, []any{"apply", "slipway-node", "cilium", "pod-1", "plan.canceled"}, []any{r.Op, r.Node, r.Agent, r.Owner, r.Code})
			require.NotEmpty(t, r.Version)
			require.False(t, r.Start.IsZero())
			c.statuses[c.failed] = "failed"
			for step, status := range c.statuses {
				require.Equal(t, status, r.statuses()[step], step)
			}
			for _, result := range r.Results {
				require.Equal(t, result.Status == "failed", result.Error != "", result.Step)
				require.Equal(t, result.Status == "changed", len(result.Changes) > 0, result.Step)
				if result.Step == c.failed {
					require.Equal(t, "plan.canceled", result.Code)
					require.Contains(t, result.Error, c.says)
					require.Contains(t, result.Error, "terminated signal received")
				}
			}
			shown := n.ok("journal").stdout
			for _, kind := range c.recorded {
				require.Contains(t, shown, kind+" ")
			}
			require.Equal(t, len(c.recorded) == 0, strings.Contains(shown, "; 0 recorded"), shown)

			if c.hangs {
				n.do(func() error {
					return errors.Join(unix.Unmount("/run/dead", unix.MNT_DETACH), os.Remove("/run/dead"), os.Remove("/run/fuse"))
				})
			}
			n.ok(n.args("apply", "--owner", "pod-1")...)
			n.ok(n.args("check", "--owner", "pod-1")...)
			n.ok("uninstall", "--owner", "pod-1")
			require.Empty(t, before.Diff(n.state()))
		})
	}
}
