// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/testns"
)

var allSteps = []string{"config", "cleanup", "host-paths", "cgroup", "sysctl", "bpffs", "cni"}

func each(status string, skipped ...string) map[string]string {
	m := map[string]string{}
	for _, step := range allSteps {
		if m[step] = status; slices.Contains(skipped, step) {
			m[step] = "skipped"
		}
	}
	return m
}

// undone is uninstall's expected status for each step: cleanup records nothing.
func undone(status string) map[string]string {
	m := each(status)
	m["cleanup"] = "unchanged"
	return m
}

func TestDemoLeavesTheMachineAsItWas(t *testing.T) {
	t.Parallel()
	newNode(t) // skips if no node can be made
	before := machine(t)
	o := here(t, nil, "demo")
	require.Zero(t, o.code, o.stdout+o.stderr)
	require.Empty(t, o.stderr)
	require.Empty(t, before.Diff(machine(t)))
	for _, scene := range []string{
		"--- apply\n", "--- apply again: nothing to do", "--- three things break", "--- check: what has broken",
		"--- apply: repair that, and nothing else", "--- uninstall: take it all back", "Nothing is left:", "Done.",
	} {
		require.Contains(t, o.stdout, scene)
	}
	require.Contains(t, o.stdout, "7 steps: 6 changed, 1 skipped")
	require.Contains(t, o.stdout, "7 steps: 6 unchanged, 1 skipped")
	require.Contains(t, o.stdout, "8 steps: 4 unchanged, 3 would-change, 1 skipped")
	require.Contains(t, o.stdout, "7 steps: 3 unchanged, 3 changed, 1 skipped")
}

func TestBPF7_DemoTakesTheOldMountCallOnly(t *testing.T) {
	t.Parallel()
	newNode(t) // skips if no node can be made
	testns.Enter(t, 0)
	require.NoError(t, testns.Refuse(unix.EPERM, testns.NewMountCalls()...))
	o := here(t, nil, "demo")
	require.Zero(t, o.code, o.stdout+o.stderr)
	require.Contains(t, o.stdout, "Nothing is left:")
}

func TestPLAN1_SecondApplyChangesNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	first := n.run(n.args("apply", "--output", "json")...)
	require.Zero(t, first.code, first.stderr)
	require.Equal(t, each("changed", "cleanup"), first.report(t).statuses())
	before := n.state()

	second := n.run(n.args("apply", "--output", "json")...)
	require.Zero(t, second.code, second.stderr)
	require.Equal(t, each("unchanged", "cleanup"), second.report(t).statuses())
	require.Empty(t, before.Diff(n.state()))
}

func TestPLAN4_CheckTellsByItsStatusAndChangesNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	before := n.state()
	o := n.run(n.args("check", "--output", "json")...)
	require.Equal(t, 2, o.code, o.stderr)
	want := each("would-change", "cleanup")
	want["preflight"] = "unchanged"
	require.Equal(t, want, o.report(t).statuses())
	require.Empty(t, before.Diff(n.state()), "a dry run creates nothing, not even a lock")

	require.Zero(t, n.run(n.args("apply")...).code)
	o = n.run(n.args("check")...)
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, "8 steps: 7 unchanged, 1 skipped")
	require.Empty(t, o.stderr)

	n.shell("umount /sys/fs/bpf && mount -t tmpfs tmpfs /sys/fs/bpf")
	o = n.run(n.args("check", "--output", "json")...)
	require.Equal(t, 1, o.code)
	require.Equal(t, "failed", o.report(t).statuses()["bpffs"])
	require.Equal(t, 2, strings.Count(o.stdout, `"code": "bpffs.foreign"`), "the run's and the step's: %s", o.stdout)
}

func TestPLAN6_UninstallLeavesTheNodeAsItWas(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -p /etc/sysctl.d /etc/cni/net.d && echo '{}' > /etc/cni/net.d/05-cilium.conflist && chmod 644 /etc/cni/net.d/05-cilium.conflist && echo 1 > /proc/sys/net/ipv4/conf/all/rp_filter")
	n.ownLoopback()
	before := n.state()
	require.Zero(t, n.run(n.args("apply")...).code)
	require.NotEmpty(t, before.Diff(n.state()))
	require.Zero(t, n.run(n.args("apply")...).code)

	plan := n.run("uninstall", "--dry-run", "--output", "json")
	require.Equal(t, 2, plan.code, plan.stderr)
	require.Equal(t, undone("would-change"), plan.report(t).statuses())
	o := n.run("uninstall", "--output", "json")
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, undone("changed"), o.report(t).statuses())
	require.Empty(t, before.Diff(n.state()))

	o = n.run("uninstall")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, "7 unchanged")
	require.Empty(t, before.Diff(n.state()))
}

// realistic writes a ConfigMap as large as one that a chart renders for an agent.
func realistic(t *testing.T) (path string, data map[string]string) {
	t.Helper()
	path, err := filepath.Abs("../../configresolve/testdata/configmap.yaml")
	require.NoError(t, err)
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	var manifest struct{ Data map[string]string }
	require.NoError(t, yaml.Unmarshal(raw, &manifest))
	require.Len(t, manifest.Data, 144)
	return path, manifest.Data
}

func TestApplyWritesEveryKeyOfARealConfiguration(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	path, data := realistic(t)
	copied := filepath.Join(n.work, "configmap.yaml") // at a path that the node sees too
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(copied, raw, 0o644))

	o := n.run("apply", "--source", "file:"+copied, "--dest", "/run/agent-config", "--only", "config")
	require.Zero(t, o.code, o.stderr)
	written := map[string]string{}
	n.do(func() error {
		entries, err := os.ReadDir("/run/agent-config")
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), "..") {
				continue
			}
			content, err := os.ReadFile(filepath.Join("/run/agent-config", e.Name()))
			if err != nil {
				return err
			}
			written[e.Name()] = string(content)
		}
		return err
	})
	want := maps.Clone(data)
	want["config-sources"], want["config-sources-overrides"] = written["config-sources"], written["config-sources-overrides"]
	require.Equal(t, want, written)
	require.JSONEq(t, `{"allowConfigKeys":[],"denyConfigKeys":[]}`, written["config-sources-overrides"])
}

// container is a script that runs its remaining arguments like a container runtime: in new
// cgroup, mount and pid namespaces, with nothing of the host but its /proc, at /hostproc.
const container = `
mkdir -p /sys/fs/cgroup/pod /tmp/hostproc.$$
point=/tmp/hostproc.$$
echo $$ > /sys/fs/cgroup/pod/cgroup.procs
exec unshare --mount --cgroup --pid --fork --propagation private sh -euc '
	mount --rbind /proc "$0"
	mount -t proc proc /proc
	mount -t tmpfs tmpfs /run
	mount -t tmpfs tmpfs /opt
	mount -t tmpfs tmpfs /etc
	mkdir /run/inside
	mount -t cgroup2 cgroup2 /run/inside
	echo "child $(stat -c %d:%i /run/inside)"
	bin=$1; command=$2; shift 2
	"$bin" --host-proc "$0" "$command" "$@"
' "$point" "$@"
`

func TestFromInsideAContainer(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -p /opt/cni/bin")
	before := n.state()
	var child string
	for _, args := range [][]string{{"mount-cgroup", "/run/cilium/cgroupv2"}, {"mount-bpffs", "/sys/fs/bpf"}} {
		out := n.shell(strings.Join(append([]string{"set --", binary}, args...), " ") + container)
		require.Contains(t, out, "changed")
		child = strings.Fields(out)[1]
	}

	var cgroup, own, bpf unix.Stat_t
	var magic unix.Statfs_t
	n.do(func() error {
		if err := os.Mkdir("/run/own", 0o755); err != nil {
			return err
		}
		if err := unix.Mount("cgroup2", "/run/own", "cgroup2", 0, ""); err != nil {
			return err
		}
		defer unix.Unmount("/run/own", 0)
		for path, st := range map[string]*unix.Stat_t{"/run/own": &own, "/run/cilium/cgroupv2": &cgroup, "/sys/fs/bpf": &bpf} {
			if err := unix.Stat(path, st); err != nil {
				return err
			}
		}
		return unix.Statfs("/sys/fs/bpf", &magic)
	})
	identity := func(st unix.Stat_t) string { return fmt.Sprintf("%d:%d", st.Dev, st.Ino) }
	require.Equal(t, identity(own), identity(cgroup), "the host's root")
	require.NotEqual(t, child, identity(cgroup), "not the container's")
	require.Equal(t, uint32(unix.BPF_FS_MAGIC), uint32(magic.Type))

	for _, line := range before.Diff(n.state()) {
		require.NotContains(t, line, "/opt/cni", "no helper binary")
		require.NotContains(t, line, "/etc/", "no configuration")
	}
	o := n.run("uninstall")
	require.Zero(t, o.code, o.stderr)
	n.shell("rmdir /run/own; rm -rf /run/mount") // mount(8) made the latter
	require.Empty(t, before.Diff(n.state()))
}

func TestPLAN3_KilledAnywhereAndRunAgain(t *testing.T) {
	t.Parallel()
	kills := sized(50, 12)
	clean := newNode(t)
	start := time.Now()
	require.Zero(t, clean.run(clean.args("apply")...).code)
	took := time.Since(start)
	want := clean.state()
	ignoreRecord(want)

	n := newNode(t)
	origin := n.state()
	for killed, tries := 0, 0; killed < kills; tries++ {
		require.Less(t, tries, 5*kills, "only %d kills hit", killed)
		delay := took * time.Duration(killed) / time.Duration(kills)
		start := time.Now()
		cmd := n.Command(binary, n.args("apply")...)
		require.NoError(t, cmd.Start())
		timer := time.AfterFunc(delay, func() { cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		what := fmt.Sprintf("kill %d after %s", killed, delay)
		if err != nil {
			require.Equal(t, syscall.SIGKILL, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(), what)
			killed++
		} else if elapsed := time.Since(start); elapsed < took {
			took = elapsed // later ones are faster than the first
		}
		o := n.run(n.args("apply")...)
		require.Zero(t, o.code, "%s: %s", what, o.stderr)
		got := n.state()
		ignoreRecord(got)
		require.Empty(t, want.Diff(got), what)
		for object := range got {
			require.NotRegexp(t, `\.slipway-.*\.(tmp|lnk)$`, object, "a temporary file: %s", what)
			require.NotRegexp(t, `^mount .* #2$`, object, "a doubled mount: %s", what)
		}

		o = n.run("uninstall")
		require.Zero(t, o.code, "uninstall, %s: %s", what, o.stderr)
		require.Empty(t, origin.Diff(n.state()), "uninstall, %s", what)
	}
}

// ignoreRecord removes the texts that name the time, the boot or the node.
func ignoreRecord(s map[string]string) {
	for object := range s {
		if strings.HasPrefix(object, "file /var/lib/slipway/") || strings.Contains(object, "/run/agent-config/..") ||
			strings.HasPrefix(object, "mount /") && !strings.Contains(object, "/run/cilium") && !strings.Contains(object, "/sys/fs/bpf") {
			delete(s, object)
		}
	}
}

func TestPLAN2_SecondRunWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	release := n.locked("/run/slipway.lock")
	before := n.state()
	o := n.run(n.args("apply", "--lock-timeout", "100ms")...)
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, "/run/slipway.lock")
	require.Empty(t, before.Diff(n.state()))
	require.Equal(t, 2, n.run(n.args("check")...).code, "a dry run takes no lock")

	release()
	require.Zero(t, n.run(n.args("apply")...).code)
}
