// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/critest"
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

// All that was done before SIGTERM is in the report and in the ledger, with what was
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
		recorded []string
	}{
		"at a gate": {
			args: []string{"--wait-for-kube-proxy", "10m"}, failed: "kube-proxy", says: "wait for kube-proxy's rules: last seen: ",
			statuses: map[string]string{"config": "not-run", "cgroup": "not-run", "bpffs": "not-run", "cni": "not-run"},
		},
		"in its last step": {
			args: []string{"--wait-loaded", "10m"}, failed: "cni-loaded", says: `it has loaded "theirs"`,
			statuses: map[string]string{"config": "changed", "cgroup": "changed", "bpffs": "changed", "cni": "changed"},
			recorded: []string{"/run/agent-config", "/run/cilium/cgroupv2", "/sys/fs/bpf", "/etc/cni/net.d/05-cilium.conflist"},
		},
		"in a system call that does not return": {
			args: []string{"--bpf-root", "/run/dead/bpf"}, hangs: true, failed: "bpffs", says: "1s later something has not ended by itself",
			statuses: map[string]string{"config": "changed", "cgroup": "changed", "sysctl": "changed", "cni": "not-run"},
			recorded: []string{"/run/agent-config", "/run/cilium/cgroupv2", dropIn},
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			then := func(int) {}
			if c.hangs { // only once all has been checked
				release := n.locked("/run/slipway.lock")
				then = func(pid int) { n.dead("/run/dead"); release(); n.awaitCall(pid) }
			} else {
				n.runtime("/run/containerd/containerd.sock", critest.Runtime{Info: critest.Containerd([]byte(theirs), "/etc/cni/net.d", "/opt/cni/bin")})
			}
			defer n.asItWas()()
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
				require.NotEmpty(t, result.Error+result.Reason+strings.Join(result.Changes, ""), result.Step)
				require.Equal(t, result.Status == "changed", len(result.Changes) > 0, result.Step)
				if result.Step == c.failed {
					require.Equal(t, "plan.canceled", result.Code)
					require.Contains(t, result.Error, c.says)
					require.Contains(t, result.Error, "asked to end by a signal, terminated")
				}
			}
			shown := n.run("status").stdout
			for _, object := range c.recorded {
				require.Regexp(t, `(?m)^  \S+ `+object+`: was `, shown)
			}
			require.Equal(t, len(c.recorded) == 0, !strings.Contains(shown, "recorded:\n"), shown)

			if c.hangs {
				n.do(func() error {
					return errors.Join(unix.Unmount("/run/dead", unix.MNT_DETACH), os.Remove("/run/dead"), os.Remove("/run/fuse"))
				})
			}
			n.ok(n.args("apply", "--owner", "pod-1")...)
			n.ok(n.args("check", "--owner", "pod-1")...)
			n.ok("uninstall", "--owner", "pod-1")
		})
	}
}

// busy starts an apply for the owner, which holds the node's lock and hangs in a step.
func (n *node) busy(owner string) (pid int) {
	n.t.Helper()
	release := n.locked("/run/slipway.lock")
	dead := filepath.Join(n.work, "dead")
	cmd := n.Command(binary, "apply", "--only", "bpffs", "--bpf-root", dead+"/bpf", "--owner", owner)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	stderr, err := cmd.StderrPipe()
	require.NoError(n.t, err)
	require.NoError(n.t, cmd.Start())
	_, err = io.ReadFull(stderr, make([]byte, len("waiting for ")))
	require.NoError(n.t, err)
	n.dead(dead) // once all has been checked
	release()
	n.awaitCall(cmd.Process.Pid)
	n.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd.Process.Pid
}

// Each command that changes the node waits for the lock, also from a container and without a
// ledger, and then names its holder. Those that only look take no lock and make nothing.
func TestPLAN2_EachCommandThatChangesTheNodeWaitsForItsHolder(t *testing.T) {
	n := newParallelNode(t)
	n.left()
	n.ok(n.args("apply", "--skip", "bpffs", "--owner", podA)...)
	n.ok("mount-cgroup", "/run/other", "--agent", "other")
	n.busy(podA)
	holder := fmt.Sprintf(`lock /run/slipway\.lock: still held after \S+ by pid \d+ on "slipway-node" \(owner "%s", since 20\S+Z\)`, podA)
	before := n.state()
	for _, args := range [][]string{
		n.args("apply", "--cgroup-root", "/run/x"), {"apply", "--state-dir=", "--only", "cgroup", "--cgroup-root", "/run/x"},
		{"run", "--only", "cgroup", "--cgroup-root", "/run/x", "--", "false"}, {"mount-cgroup", "/run/x"}, {"mount-bpffs", "/run/x"},
		{"sysctlfix", "--sysctl-config-file", "99-x.conf"}, {"install-cni", "--plugins", n.plugins, "--cni-conf", n.conf, "--cni-conf-name", "06-x.conflist"},
		{"uninstall"}, {"uninstall", "--all-agents"}, {"uninstall-cni"}, {"forget", cgroupRoot}, {"release", "--agent", "other"},
		{"cleanup", "--all-state", "-f"}, {"cleanup", "--all-state", "-f", "--state-dir="},
	} {
		args = slices.Insert(slices.Clone(args), 1, "--lock-timeout=10ms")
		o := n.exitsEnv(1, []string{"POD_UID=" + podA}, args...)
		require.Regexp(t, holder, o.stderr, args)
	}
	require.Regexp(t, `still held after \S+ by pid \d+ on "slipway-node"`, n.fromAPod("mount-cgroup", "/run/x", "--lock-timeout=10ms", "--owner", podA))
	for _, args := range [][]string{
		n.args("check"), {"uninstall", "--dry-run"}, {"uninstall-cni", "--dry-run"}, {"uninstall", "--dry-run", "--all-agents"},
		{"cleanup", "--all-state", "--dry-run"}, {"status"},
	} {
		o := n.runEnv([]string{"POD_UID=" + podA}, args...)
		require.Contains(t, []int{0, 2}, o.code, "%s: %s", args, o.stderr)
		require.NotContains(t, o.stderr, "slipway.lock", args)
	}
	n.shell("find /sys/fs/cgroup/pod -depth -type d -exec rmdir {} + ; rm -rf /run/mount")
	require.Empty(t, strings.Join(before.Diff(n.state()), "\n"))
}

// However the run is shown, on standard error, where a person looks.
func TestPLAN20_AWaitIsSaidOnce(t *testing.T) {
	n := newParallelNode(t)
	release := n.locked("/run/slipway.lock")
	defer release()
	for _, more := range [][]string{nil, {"--output", "json"}, {"--timeline", filepath.Join(n.work, "x.svg")}} {
		o := n.exits(1, append([]string{"apply", "--only", "cgroup", "--lock-timeout", "200ms"}, more...)...)
		require.Equal(t, 1, strings.Count(o.stderr, "the lock /run/slipway.lock, held by"), o.stderr)
		require.NotContains(t, o.stdout, "waiting for")
	}
}

// The rules that the kubelet has written by then, which the chart's own script mistakes for
// kube-proxy's, do not end the wait.
func TestRDY1_ApplyWaitsForKubeProxy(t *testing.T) {
	n := newParallelNode(t)
	n.shell("iptables-nft -t mangle -N KUBE-IPTABLES-HINT; iptables-nft -t mangle -N KUBE-KUBELET-CANARY")
	args := []string{"--host-proc", "/proc", "--wait-for-kube-proxy", "30s"}
	apply := n.args("apply", append(args, "--dest", filepath.Join(n.work, "config"))...)
	o := n.exits(2, n.args("check", args...)...)
	require.Contains(t, o.stdout, "wait for kube-proxy's rules: neither nf_tables nor legacy iptables have any, for IPv4 or IPv6")

	before := n.state()
	cmd := n.Command(binary, apply...)
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && !strings.Contains(lines.Text(), "waiting for kube-proxy's rules: neither nf_tables nor legacy iptables have any") {
	}
	require.Empty(t, before.Diff(n.state()), "nothing is changed while it waits")
	n.shell("iptables-nft -t nat -N KUBE-NODEPORTS")
	for lines.Scan() {
	}
	require.NoError(t, cmd.Wait())
	require.Contains(t, n.ok(apply...).stdout, "8 steps: 7 unchanged, 1 skipped")
}
