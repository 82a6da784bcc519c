// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	main "github.com/slipway-dev/slipway/examples/nodeinit"
	"github.com/slipway-dev/slipway/internal/snapshot"
	"github.com/slipway-dev/slipway/internal/testns"
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
	n := newParallelNode(t)
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
		"install-cni --cni-template none": "/etc/cni/net.d", "guard --cni-template none": "/var/lib/slipway", "cleanup --all-state -f": "/run/cilium",
		"status": "/var/lib/slipway", "uninstall --dry-run": "/var/lib/slipway", "uninstall": "/var/lib/slipway",
	} {
		out := n.pod("", strings.Fields(command)...)
		require.Contains(t, out, "exit 1", command)
		require.Contains(t, out, where+": not the host's: ", command)
	}
	for _, command := range []string{"check", "apply", "uninstall"} { // in an image with nothing but the program
		require.Regexp(t, `/var/lib/slipway(/ledger)?: not the host's: (?s:.*)--host-proc`, n.pod("rmdir $ROOT/var/lib", command))
	}
	out = n.pod("", "mount-cgroup", "--here")
	require.Contains(t, out, "changed")
	require.NotContains(t, out, "exit")
}

// Values of links would stay in a pod's network namespace, even if the drop-in is on a volume
// of the host's; other values are the machine's. This node is not in the kernel's first network
// namespace, so it looks like a pod.
func TestSEC10_ValuesOfAPodsNetworkAreRefused(t *testing.T) {
	n := newParallelNode(t)
	n.shell("mkdir -p /etc/sysctl.d /var/lib/slipway; echo 1 > /proc/sys/net/ipv4/conf/all/rp_filter")
	volumes := `for dir in /etc/sysctl.d /var/lib/slipway; do mkdir -p $ROOT$dir; mount -n --bind $dir $ROOT$dir; done; `
	before := n.beside()
	apply := []string{"apply", "--only", "sysctl"}
	for namespaces, args := range map[string][]string{"--net": {"sysctlfix"}, "": apply, "--net --uts": append(apply, "--sysctl-conf-dir=", "--sysctl", "net.ipv4.ip_forward = 1")} {
		out := n.podIn(namespaces, volumes, args...)
		require.Contains(t, out, "exit 1", args)
		require.Contains(t, out, "/proc/sys/net: not the host's: nothing shows that this container is in the host's network namespace")
		require.Contains(t, out, "hostNetwork: true")
		require.Contains(t, out, "--host-proc", "the program's own remedy")
	}
	n.shell("rm -f /var/lib/slipway/*") // it reports the refusal
	require.Empty(t, before.Diff(n.beside()))

	out := n.podIn("--net", volumes, append(apply, "--sysctl-conf-dir=", "--sysctl", "kernel.timer_migration = "+n.shell("cat /proc/sys/kernel/timer_migration"))...)
	require.NotContains(t, out, "exit", "it is right already")
	out = n.podIn("--net", volumes, "sysctlfix", "--here")
	require.NotContains(t, out, "exit")
	require.Contains(t, out, "changed")
	require.Equal(t, "1", n.shell("cat /proc/sys/net/ipv4/conf/all/rp_filter"), "the pod's value was meant")
}

func TestSEC10_VolumesOfTheHostGoOn(t *testing.T) {
	n := newParallelNode(t)
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
	n := newParallelNode(t)
	volume := `mkdir -p /run/cilium $ROOT/run/cilium; mount -n --bind /run/cilium $ROOT/run/cilium; `
	out := n.pod(volume+"mount -n --make-private $ROOT/run/cilium", "mount-cgroup")
	require.Contains(t, out, "exit 1")
	require.Contains(t, out, "the mount on /run/cilium is not shared with pid 1")
	out = n.pod(volume, "mount-bpffs", "/run/cilium/bpf", "--bpf-fallback", "/run/cilium/bpf2")
	require.NotContains(t, out, "exit")
	require.Contains(t, n.shell("cat /proc/1/mountinfo"), " /run/cilium/bpf ")
}

// A fallback that the host would not see is an error before it is used.
func TestSEC10_AFallbackInsideTheContainerIsRefused(t *testing.T) {
	n := newParallelNode(t)
	before := n.state()
	out := n.pod(`mkdir -p /run/cilium/bpf $ROOT/run/cilium; mount -n -t tmpfs tmpfs /run/cilium/bpf; mount -n --rbind /run/cilium $ROOT/run/cilium; `,
		"mount-bpffs", "/run/cilium/bpf", "--bpf-fallback", "/opt/bpf")
	n.shell("umount /run/cilium/bpf; rmdir /run/cilium/bpf")
	require.Contains(t, out, "exit 1")
	require.Contains(t, out, "/opt/bpf: not the host's: ")
	require.NotContains(t, strings.Join(before.Diff(n.state()), "\n"), "bpf", "nothing is mounted")
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
	n := newParallelNode(t)
	n.shell("mkdir -p /run/proc /run/fake/1/ns; mount -n --bind /proc /run/proc; touch /run/fake/1/ns/mnt")
	before := n.state()
	for proc, says := range map[string]string{
		"/run/proc": "/run/proc: not the host's: its pid 1 is in this mount namespace",
		"/run/fake": "it is not a proc file system",
		"/run":      "it is not a proc file system",
	} {
		for _, command := range []string{"mount-cgroup", "uninstall"} {
			o := n.exits(1, "--host-proc", proc, command)
			require.Contains(t, o.stderr, says)
		}
	}
	require.Empty(t, before.Diff(n.state()))
	n.ok("--host-proc=/proc", "mount-cgroup")
}

// Every command that acts on the host enters it through --host-proc: where that shows no
// process, nothing is done instead.
func TestPLAN10_EachCommandEntersTheHost(t *testing.T) {
	n := newParallelNode(t)
	n.left()
	n.shell("mkdir /run/proc")
	defer n.asItWas()()
	given := map[string][]string{
		"apply": n.args("apply"), "check": n.args("check"), "run": n.args("run", "--", "true"), "install-cni": {"install-cni", "--plugins", n.plugins},
		"guard": n.args("guard"), "cleanup": {"cleanup", "--all-state", "-f"}, "forget": {"forget", "/x"}, "release": {"release", "--agent", "other"},
	}
	var acting []string
	eachCommand(main.Commands(), func(c *cobra.Command) {
		if !ours(c) || slices.Contains([]string{"nodeinit", "build-config", "explain", "demo", "version"}, c.Name()) {
			return // it has nothing to do on the host
		}
		acting = append(acting, c.Name())
		args, ok := given[c.Name()]
		if !ok {
			args = strings.Fields(c.CommandPath())[1:]
		}
		o := n.exits(1, append([]string{"--host-proc=/run/proc"}, args...)...)
		require.Contains(t, o.stderr, "/run/proc", args)
	})
	require.Subset(t, acting, []string{"mount-cgroup", "mount-bpffs", "sysctlfix", "install-cni", "uninstall-cni", "uninstall", "status"})
}

// withCapabilities runs the program as root with only these capabilities; it enters the node
// through its /proc, as a pod does.
func (n *node) withCapabilities(capabilities []string, args ...string) outcome {
	n.t.Helper()
	cmd := n.Command("setpriv", append([]string{
		"--bounding-set", "-all,+" + strings.Join(capabilities, ",+"), "--inh-caps", "-all", "--",
		binary, "--host-proc", "/proc",
	}, args...)...)
	return n.outcome(cmd)
}

// The deployment example's capabilities suffice, and each is needed.
func TestPLAN7_ApplyNeedsThreeCapabilitiesAndNamesTheOneThatIsMissing(t *testing.T) {
	t.Parallel()
	needed := []string{"sys_admin", "sys_chroot", "sys_ptrace"}
	n := newNode(t)
	n.shell("echo 2 > /proc/sys/net/ipv4/conf/all/rp_filter")
	before := n.state()
	apply := n.args("apply", "--output", "json", "--dest", filepath.Join(n.work, "config")) // the pod's, not the node's
	for _, missing := range needed {
		rest := slices.DeleteFunc(slices.Clone(needed), func(c string) bool { return c == missing })
		o := n.withCapabilities(rest, apply...)
		require.Equal(t, 1, o.code, "without %s", missing)
		require.Contains(t, o.stderr, "CAP_"+strings.ToUpper(missing))
		require.Empty(t, before.Diff(n.state()))
	}
	o := n.withCapabilities(needed, apply...)
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, each("changed", "cleanup"), o.report(t).statuses())
	o = n.withCapabilities(needed, "uninstall")
	require.Zero(t, o.code, o.stderr)
	require.Empty(t, before.Diff(n.state()))
}

// confine executes the program under the default seccomp profile, without new privileges, and
// with 64 descriptors.
func confine(program string, args []string) error {
	runtime.LockOSThread() // a filter belongs to the thread
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64}); err != nil {
		return fmt.Errorf("setrlimit: %w", err)
	}
	if err := testns.Refuse(unix.EPERM, testns.RefusedByDefault()...); err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	return unix.Exec(program, append([]string{program}, args...), []string{"PATH=" + os.Getenv("PATH")})
}

// asAPod is a script that runs its remaining arguments with a read-only root, the node's /proc
// at $1, and three capabilities.
const asAPod = `
exec unshare --mount --propagation private sh -euc '
	mount --rbind /proc "$1"
	mount --make-private -o remount,bind,ro /
	if touch /tried 2> /dev/null; then exit 9; fi
	shift
	exec setpriv --bounding-set -all,+sys_admin,+sys_chroot,+sys_ptrace --inh-caps -all --no-new-privs -- "$@"
' "$@"
`

func TestSEC6_WithinALittleContainer(t *testing.T) {
	n := newParallelNode(t)
	hostProc := n.work + "/hostproc"
	require.NoError(t, os.Mkdir(hostProc, 0o755))
	defer n.asItWas()()
	run := func(args ...string) outcome {
		t.Helper()
		cmd := n.Command("sh", append([]string{"-euc", asAPod, "pod", "pod", hostProc, os.Args[0], "--host-proc", hostProc}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), confined + "=" + binary}
		return n.outcome(cmd)
	}
	apply := n.args("apply", "--output", "json", "--dest", n.work+"/config")
	for _, want := range []string{"changed", "unchanged"} {
		o := run(apply...)
		require.Zero(t, o.code, o.stderr)
		require.Equal(t, each(want, "cleanup"), o.report(t).statuses())
	}
	o := run(n.args("check", "--dest", n.work+"/config")...)
	require.Zero(t, o.code, o.stdout+o.stderr)
	o = run("uninstall")
	require.Zero(t, o.code, o.stderr)
	n.shell("rm -rf /run/mount") // mount(8)'s
}
