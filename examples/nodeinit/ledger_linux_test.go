// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"encoding/base64"
	"net"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/critest"
)

// unwrapped is output in which each text is one line.
func unwrapped(o outcome) string {
	return regexp.MustCompile(`\n {4,}`).ReplaceAllString(o.stdout, " ")
}

// Each object has a line: what it was, what it is, and who wants it. What is forgotten stays as
// it is, and is no orphan.
func TestPLAN6_StatusShowsWhatIsRecordedAndForgetDropsIt(t *testing.T) {
	n := newParallelNode(t)
	n.okEnv([]string{"POD_UID=pod-1"}, "mount-bpffs", "/run/some/bpf")
	o := n.ok("status")
	require.Regexp(t, `(?m)^  owner +"pod-1", generation 1, `, o.stdout)
	require.Regexp(t, `(?m)^  \S+ /run/some/bpf: was absent, left as .*; wanted by cilium/bpffs$`, unwrapped(o))
	require.Regexp(t, `(?m)^  dir /run/some: was absent, left as dir 0755; wanted by cilium/bpffs$`, unwrapped(o))
	v := n.status(0)
	require.Len(t, v.Records, 3)
	for _, r := range v.Records {
		require.Equal(t, "bpffs", r.Claims[0].Step)
		require.True(t, strings.HasSuffix(r.ID, r.Object), r.ID)
	}

	n.exits(3, "forget", "/run/some/bpf") // it is pod-1's
	n.exits(1, "forget", "--owner", "pod-1", "/nothing")
	n.exits(64, "forget", "--damaged", "/run/some/bpf")
	o = n.ok("forget", "--owner", "pod-1", "/run/some/bpf")
	require.Regexp(t, `(?m)^forgot \S+ /run/some/bpf$`, o.stdout)
	n.exits(64, "forget", "--state-dir", "", "/run/some/bpf")

	require.Regexp(t, `(?m)^  \S+ /run/some/bpf: left in place, and no longer recorded$`, n.ok("status").stdout, "what is forgotten is on record")
	n.shell("umount /run/some/bpf; rmdir /run/some/bpf")
	n.ok("uninstall", "--owner", "pod-1")
	n.ok("mount-bpffs", "/run/some/bpf")
	require.NotContains(t, n.ok("status").stdout, "left in place", "it is recorded again")
	n.ok("uninstall")
	n.shell("test ! -e /var/lib/slipway")
}

const dropIn = "/etc/sysctl.d/99-zzz-override_cilium.conf"

// A kubelet sees the exit status of the last attempt only.
func TestPLAN6_AnEditedDropInIsNamedEachTime(t *testing.T) {
	n := newParallelNode(t)
	n.shell("mkdir -p /etc/sysctl.d")
	n.ok(n.args("apply")...)
	n.shell("echo '# theirs' >> " + dropIn + "; touch -d '1 minute ago' " + dropIn) // it is no longer being written
	kept := dropIn + " is no longer as it was left, so it is kept"
	for _, args := range [][]string{{"uninstall", "--dry-run"}, {"uninstall"}, {"uninstall"}, {"uninstall", "--only", "sysctl"}} {
		o := n.exits(1, args...)
		require.Contains(t, o.stderr, kept, args)
		require.Contains(t, o.stderr, "nodeinit: --accept-kept: leave for good")
	}
	require.Regexp(t, `(?m)^  \S+ `+dropIn+`: was .*; wanted by cilium/sysctl; kept: `+kept, unwrapped(n.run("status")))

	n.ok(n.args("apply")...) // goes on beside what is kept, and replaces it
	n.ok("uninstall")
	require.Contains(t, n.read(dropIn), "# theirs")
	n.ok(n.args("apply")...)
	n.shell("echo '# ours' >> " + dropIn + "; touch -d '1 minute ago' " + dropIn)
	n.exits(1, "uninstall")
	o := n.ok("uninstall", "--accept-kept")
	require.Contains(t, o.stdout, "leave "+dropIn+" as another program has changed it")
	require.Contains(t, n.run("status").stdout, dropIn+": left in place", "what was accepted is on record")
	n.ok("uninstall")
	require.Contains(t, n.read(dropIn), "# ours")

	// The drop-in still says that it was made here, and is no orphan even after the next agent.
	for range 2 {
		n.ok(n.args("apply")...)
		require.NotContains(t, n.read(dropIn), "# ours")
		n.ok("uninstall")
		require.Contains(t, n.read(dropIn), "# ours")
	}
}

// A node that was cloned from a prepared disk, or whose network was taken over, has results
// of sandboxes that do not exist. Only the runtime knows, and only if it is the host's.
func TestCLN12_ResultsOfSandboxesThatDoNotExist(t *testing.T) {
	t.Parallel()
	const conf, cni, result = "/etc/cni/net.d/05-cilium.conflist", "/opt/cni/bin/cilium-cni", "/var/lib/cni/results/cilium-0123-eth0"
	const unproven = "nothing proves that the host's container runtime listens"
	prepare := func(t *testing.T, serve func(n *node, sandboxes func() []string)) (n *node, listed *atomic.Value) {
		n, listed = newNode(t), &atomic.Value{}
		listed.Store([]string{"0123"})
		serve(n, func() []string { return listed.Load().([]string) })
		n.shell("mkdir -p /etc/cni/net.d /opt/cni/bin /var/lib/cni/results; cp " + n.plugins + "/test-cni " + n.plugins + "/cilium-cni")
		n.write(result, `{"kind":"cniCacheV1","containerId":"0123","networkName":"cilium","config":"`+
			base64.StdEncoding.EncodeToString([]byte(`{"cniVersion":"0.3.1","name":"cilium","plugins":[{"type":"cilium-cni"}]}`))+`"}`)
		n.shell("touch -d '1 hour ago' " + result) // its sandbox is not starting
		return n, listed
	}
	proven := func(n *node, sandboxes func() []string) {
		n.runtime("/run/containerd/containerd.sock", critest.Runtime{Info: critest.Containerd(nil, "/etc/cni/net.d", "/opt/cni/bin"), Sandboxes: sandboxes})
	}
	none := func(n *node, _ func() []string) { n.shell("mkdir -p /run/containerd") }
	kept := func(o outcome, file, flag string) {
		t.Helper()
		require.Contains(t, o.stdout+o.stderr, "kept: sandboxes need it for their deletion: 1, by "+result)
		require.Contains(t, o.stdout+o.stderr, file)
		if o.code != 0 {
			require.Contains(t, o.stderr, "nodeinit: "+flag+": ")
		}
	}
	cleaned := func(n *node, way string) outcome { return n.run("cleanup", "--all-state", way) }
	leave := func(n *node) {
		n.shell("touch " + cni)
		n.write(conf, `{"cniVersion":"0.3.1","name":"cilium","plugins":[{"type":"cilium-cni"}]}`)
	}

	n, listed := prepare(t, proven)
	leave(n)
	for way, code := range map[string]int{"--dry-run": 0, "-f": 1} {
		o := cleaned(n, way)
		require.Equal(t, code, o.code, o.stderr)
		kept(o, cni, "--while-alive")
	}
	listed.Store([]string{"4567"})
	require.NotContains(t, cleaned(n, "--dry-run").stdout, "kept")
	o := cleaned(n, "-f")
	require.Zero(t, o.code, o.stderr)
	n.shell("test ! -e " + conf + " -a ! -e " + cni + " -a -e " + result)

	listed.Store([]string{"0123"})
	n.ok("install-cni", "--plugins", n.plugins, "--cni-template", "none")
	kept(n.exits(1, "uninstall"), conf, "--force")
	listed.Store([]string{})
	n.ok("uninstall")
	n.shell("test ! -e " + conf + " -a ! -e " + cni)

	leave(n)
	listed.Store([]string{"0123"})
	written := "--write-cni-conf-when-ready=/host" + conf
	kept(n.run("uninstall-cni", written), conf, "--force")
	n.ok("uninstall-cni", written, "--keep-plugins")
	n.shell("test ! -e " + conf)
	n.ok("cleanup", "--all-state", "-f", "--while-alive")
	n.shell("test ! -e " + cni)

	n, _ = prepare(t, none)
	leave(n)
	o = cleaned(n, "-f")
	require.Equal(t, 1, o.code, o.stderr)
	kept(o, cni, "--while-alive")
	require.Contains(t, o.stderr, "(whether they still exist is unknown: find the container runtime: no container runtime listens)")
	n.okEnv(cleanState, "apply", "--only", "cleanup") // installs it again, so it keeps nothing for sandboxes
	n.shell("test ! -e " + cni)

	n, _ = prepare(t, none) // any user can listen at a socket in a directory that all may change
	n.shell("chmod 0777 /run/containerd")
	var his net.Listener
	n.do(func() (err error) { his, err = net.Listen("unix", "/run/containerd/containerd.sock"); return err })
	his.(*net.UnixListener).SetUnlinkOnClose(false) // its path is on the node
	critest.Serve(t, his, critest.Runtime{Info: critest.Containerd(nil, "/etc/cni/net.d", "/opt/cni/bin")})
	leave(n)
	o = n.exits(1, "cleanup", "--all-state", "-f", "--cni-bin-dir", "/opt/cni/bin", "--cni-conf-dir", "/etc/cni/net.d")
	require.Contains(t, o.stderr, unproven)
	n.shell("test -e " + conf + " -a -e " + cni)
}

const cgroupRoot = "/run/cilium/cgroupv2"

var removedBy = regexp.MustCompile(`(?m)remove it: (.*)$`)

// A node whose state directory is lost does not count as untouched.
func TestPLAN6_ALostStateDirectoryIsNoUninstalledNode(t *testing.T) {
	n := newParallelNode(t)
	n.ok(n.args("apply")...)
	applied := n.state()
	n.shell("mv /var/lib/slipway /var/lib/lost")
	for _, args := range [][]string{{"uninstall"}, {"uninstall"}, {"uninstall", "--dry-run"}, {"uninstall", "--any-owner", "--accept-kept", "--output", "json"}} {
		o := n.exits(1, args...)
		for _, object := range []string{cgroupRoot, "/sys/fs/bpf", dropIn} {
			require.Contains(t, o.stderr, "nothing is recorded in /var/lib/slipway, and "+object+" was made here: undo it with the --state-dir that it was made with, or if that is lost, remove it: ", args)
		}
	}
	n.shell("mv /var/lib/lost /var/lib/slipway")
	require.Empty(t, applied.Diff(n.state()))

	n.shell("mv /var/lib/slipway /var/lib/lost")
	for _, line := range removedBy.FindAllStringSubmatch(n.run("uninstall").stderr, -1) {
		n.shell(line[1])
	}
	n.shell("rm /run/slipway.lock")
	o := n.ok("uninstall")
	require.Contains(t, o.stdout, "nothing is recorded in /var/lib/slipway\n")
	require.Empty(t, o.stderr)
	n.shell("test ! -e /run/slipway.lock") // there is nothing to lock
}

// The error names the directory that was probably meant: the usual one, or the one that the
// drop-in names.
func TestPLAN6_AMistypedStateDirectory(t *testing.T) {
	t.Parallel()
	for meant, typed := range map[string]string{"/var/lib/slipway": "/var/lib/slipwya", "/var/lib/cilium/slipway": "/var/lib/slipway"} {
		n := newNode(t)
		before := n.state()
		n.shell("mkdir -p /var/lib/cilium")
		n.ok(n.args("apply", "--state-dir", meant)...)
		o := n.exits(1, "uninstall", "--state-dir", typed)
		for _, object := range []string{cgroupRoot, "/sys/fs/bpf", dropIn} {
			require.Contains(t, o.stderr, "nothing is recorded in "+typed+", and "+object+" was made here: undo it by nodeinit uninstall --state-dir="+meant)
		}
		o = n.ok("uninstall", "--state-dir", meant)
		require.NotContains(t, o.stdout, "nothing is recorded in")
		n.shell("rmdir /var/lib/cilium")
		require.Empty(t, before.Diff(n.state()))
	}
}

// Objects in another agent's ledger are not orphans.
func TestPLAN6_AnObjectInAnotherLedgerIsNoOrphan(t *testing.T) {
	n := newParallelNode(t)
	acme := []string{"--agent", "acme", "--state-dir", "/var/lib/acme"}
	n.ok(append([]string{"mount-bpffs"}, acme...)...)
	n.ok("uninstall")
	require.Regexp(t, ` slipway.*acme`, n.shell("grep ' /sys/fs/bpf ' /proc/self/mountinfo"))

	o := n.exits(1, "uninstall", "--agent", "acme")
	require.Contains(t, o.stderr, "nothing is recorded in /var/lib/slipway, and /sys/fs/bpf was made here: undo it by nodeinit uninstall --state-dir=/var/lib/acme")
	o = n.exits(1, "uninstall", "--agent", "acme", "--state-dir", "/var/lib/lost")
	require.Contains(t, o.stderr, "/sys/fs/bpf was made here")
	n.ok(append([]string{"uninstall"}, acme...)...)
	n.exits(64, "uninstall", "--agent", "Acme")
}
