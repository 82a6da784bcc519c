// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/snapshot"
)

// pod starts the program as pid 1 of a container on the node: with an overlay as its root, its
// own /proc, and the volumes that $VOLUMES mounts below $ROOT. It returns the output, with the
// exit status as the last word.
func (n *node) pod(volumes string, args ...string) string {
	n.t.Helper()
	return n.podIn("", volumes, args...)
}

// podIn is pod with additional namespaces, given as flags of unshare(1).
func (n *node) podIn(namespaces, volumes string, args ...string) string {
	n.t.Helper()
	quoted := ""
	for _, arg := range args {
		quoted += " '" + arg + "'"
	}
	return n.shell(`
umount -l /run/c/root 2>/dev/null || true
rm -rf /run/c
mkdir -p /run/c/lower /run/c/upper /run/c/work /run/c/root
mount -n -t overlay -o lowerdir=/run/c/lower,upperdir=/run/c/upper,workdir=/run/c/work overlay /run/c/root
mount -n --make-private /run/c/root
ROOT=/run/c/root
mkdir -p $ROOT/proc $ROOT/sys $ROOT/etc $ROOT/run $ROOT/var/lib $ROOT/opt $ROOT/tmp
ln -s ../run $ROOT/var/run
cp ` + binary + ` $ROOT/nodeinit
` + volumes + `
unshare ` + namespaces + ` --mount --pid --fork --kill-child --propagation unchanged sh -c "
	mount -n --make-private $ROOT
	mount -n -t proc proc $ROOT/proc
	exec chroot $ROOT /nodeinit ` + quoted + ` 2>&1" || echo "exit $?"
mount -n --make-rprivate /run/c/root # or the volumes' mounts would go on the node, too
umount -l /run/c/root`)
}

// beside is the node's state without pods and mount(8)'s files.
func (n *node) beside() snapshot.Snapshot {
	state := n.state()
	for name := range state {
		if strings.HasPrefix(name, "file /run/c") || strings.HasPrefix(name, "file /run/mount") {
			delete(state, name)
		}
	}
	return state
}

func TestSEC10_APodWithoutTheHostsProcIsRefused(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	before := n.beside()
	out := n.pod("", "apply", "--source", "env:X_")
	require.Contains(t, out, "exit 1")
	for _, says := range []string{
		"step host-paths: check: /run/cilium: not the host's: it is on the container's own root",
		"hostPath: {path: /proc}", "hostPath: {path: /run/netns}", "--host-proc", "--here",
	} {
		require.Contains(t, out, says)
	}
	require.Empty(t, before.Diff(n.beside()))
	for command, where := range map[string]string{
		"sysctlfix": "/etc/sysctl.d", "mount-cgroup": "/run/cilium/cgroupv2", "mount-bpffs": "/sys/fs/bpf",
		"install-cni --cni-template none": "/etc/cni/net.d", "guard --cni-template none": "/etc/cni/net.d", "cleanup --all-state -f": "/run/cilium",
		"status": "/var/lib/slipway", "journal": "/var/lib/slipway", "uninstall --dry-run": "/var/lib/slipway", "uninstall": "/var/lib/slipway",
	} {
		out := n.pod("", strings.Fields(command)...)
		require.Contains(t, out, "exit 1", command)
		require.Contains(t, out, where+": not the host's: ", command)
	}
	out = n.pod("", "mount-cgroup", "--here")
	require.Contains(t, out, "changed")
	require.NotContains(t, out, "exit")
}

// Values of links would stay in a pod's network namespace, even if the drop-in is on a volume
// of the host's; other values are the machine's. This node is not in the kernel's first network
// namespace, so it looks like a pod.
func TestSEC10_ValuesOfAPodsNetworkAreRefused(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -p /etc/sysctl.d /var/lib/slipway; echo 1 > /proc/sys/net/ipv4/conf/all/rp_filter")
	volumes := `for dir in /etc/sysctl.d /var/lib/slipway; do mkdir -p $ROOT$dir; mount -n --bind $dir $ROOT$dir; done; `
	before := n.beside()
	apply := []string{"apply", "--only", "sysctl"}
	for _, namespaces := range []string{"--net", ""} {
		for _, args := range [][]string{{"sysctlfix"}, apply, append(apply, "--sysctl-conf-dir=", "--sysctl", "net.ipv4.ip_forward = 1")} {
			out := n.podIn(namespaces, volumes, args...)
			require.Contains(t, out, "exit 1", args)
			require.Contains(t, out, "/proc/sys/net: not the host's: nothing shows that this container is in the host's network namespace")
			require.Contains(t, out, "hostNetwork: true")
			require.Contains(t, out, "--host-proc", "the program's own remedy")
		}
	}
	n.shell("rm -f /var/lib/slipway/cilium.last.json") // it reports the refusal
	require.Empty(t, before.Diff(n.beside()))

	out := n.podIn("--net", volumes, append(apply, "--sysctl-conf-dir=", "--sysctl", "kernel.timer_migration = "+n.shell("cat /proc/sys/kernel/timer_migration"))...)
	require.NotContains(t, out, "exit", "it is right already")
	out = n.podIn("--net", volumes, "sysctlfix", "--here")
	require.NotContains(t, out, "exit")
	require.Contains(t, out, "changed")
	require.Equal(t, "1", n.shell("cat /proc/sys/net/ipv4/conf/all/rp_filter"), "the pod's value was meant")
}

func TestSEC10_VolumesOfTheHostGoOn(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -p /etc/cni/net.d /opt/cni/bin /etc/sysctl.d /var/lib/slipway")
	out := n.pod(`
for dir in /etc/cni/net.d /etc/sysctl.d /var/lib/slipway; do mkdir -p $ROOT$dir; mount -n --bind $dir $ROOT$dir; done
mkdir $ROOT/plugins && cp `+n.plugins+`/* $ROOT/plugins
mkdir -p $ROOT/opt/cni/bin && mount -n --bind /opt/cni/bin $ROOT/opt/cni/bin`,
		"install-cni", "--plugins", "/plugins")
	require.NotContains(t, out, "exit")
	require.Contains(t, out, "changed")
	require.Equal(t, plugin, n.read("/opt/cni/bin/test-cni"))
}

func TestSEC10_BidirectionalMountsGoOn(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	volume := `mkdir -p /run/cilium $ROOT/run/cilium; mount -n --bind /run/cilium $ROOT/run/cilium; `
	out := n.pod(volume+"mount -n --make-private $ROOT/run/cilium", "mount-cgroup")
	require.Contains(t, out, "exit 1")
	require.Contains(t, out, "the mount on /run/cilium is not shared with pid 1")
	out = n.pod(volume, "mount-bpffs", "/run/cilium/bpf")
	require.NotContains(t, out, "exit")
	require.Contains(t, n.shell("cat /proc/1/mountinfo"), " /run/cilium/bpf ")
}

// A fallback that the host would not see is an error before it is used.
func TestSEC10_TheFallbackIsTheHostsToo(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	volume := `mkdir -p /run/cilium $ROOT/run/cilium; mount -n --bind /run/cilium $ROOT/run/cilium; `
	before := n.state()
	out := n.pod(volume, "mount-bpffs", "/run/cilium/bpf", "--bpf-fallback", "/opt/bpf")
	require.Contains(t, out, "exit 1")
	require.Contains(t, out, "/opt/bpf: not the host's: ")
	diff := before.Diff(n.state())
	require.NotContains(t, strings.Join(diff, "\n"), "bpf", "nothing is mounted")
	out = n.pod(volume, "mount-bpffs", "/run/cilium/bpf", "--bpf-fallback", "/run/cilium/bpf2")
	require.NotContains(t, out, "exit")
	require.Contains(t, n.shell("cat /proc/1/mountinfo"), " /run/cilium/bpf ")
}

// A unit with PrivateMounts= has its own peer groups.
func TestSEC10_AUnitWithPrivateMounts(t *testing.T) {
	t.Parallel()
	const unit = "unshare --mount --propagation slave sh -c 'mount -n --make-rshared / && "
	n := newNode(t)
	before := n.state()
	for command, says := range map[string]string{
		"mount-cgroup":                    "mount on /run/cilium/cgroupv2: not the host's: the mount on / is not shared with pid 1",
		"mount-bpffs":                     "not shared with pid 1",
		"mount-bpffs --bpf-shared":        "not shared with pid 1",
		"mount-bpffs --bpf-shared --here": "shared, but not with pid 1",
	} {
		out := n.shell(unit + binary + " " + command + " 2>&1 || echo exit $?'")
		require.Contains(t, out, says, command)
		require.Contains(t, out, "exit 1", command)
	}
	require.Empty(t, before.Diff(n.state()))

	out := n.shell("unshare --net --mount --propagation slave " + binary + " apply --only sysctl --sysctl-conf-dir= 2>&1 || echo exit $?")
	require.Contains(t, out, "/proc/sys/net: not the host's: pid 1 is in another network namespace")
	require.Contains(t, out, "exit 1")

	// Its files are the host's; through /proc, so are its mounts.
	out = n.shell(unit + binary + " sysctlfix 2>&1'")
	require.Contains(t, out, "changed")
	out = n.shell(unit + binary + " --host-proc=/proc mount-cgroup 2>&1'")
	require.Contains(t, out, "changed")
	require.Contains(t, n.shell("cat /proc/1/mountinfo"), " /run/cilium/cgroupv2 ")
}

func TestSEC10_HostProcIsAProcOfAnotherNamespace(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.shell("mkdir -p /run/proc /run/fake/1/ns; mount -n --bind /proc /run/proc; touch /run/fake/1/ns/mnt")
	before := n.state()
	for proc, says := range map[string]string{
		"/run/proc": "/run/proc: not the host's: its pid 1 is in this mount namespace",
		"/run/fake": "it is not a proc file system",
		"/run":      "it is not a proc file system",
	} {
		for _, command := range []string{"mount-cgroup", "uninstall"} {
			o := n.run("--host-proc", proc, command)
			require.Equal(t, 1, o.code, proc)
			require.Contains(t, o.stderr, says)
		}
	}
	require.Empty(t, before.Diff(n.state()))
	o := n.run("--host-proc=/proc", "mount-cgroup")
	require.Zero(t, o.code, o.stderr)
}
