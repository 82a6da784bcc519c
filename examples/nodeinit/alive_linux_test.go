// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const (
	pidPath  = "/var/run/cilium/cilium.pid"
	sockPath = "/var/run/cilium/cilium.sock"

	podA = "aaaaaaaa-0000-4000-8000-000000000001"
	podB = "bbbbbbbb-0000-4000-8000-000000000002"
	podC = "cccccccc-0000-4000-8000-000000000003"
)

// writesPid does what Cilium's agent does with its pid file (pkg/pidfile and
// daemon/cmd/daemon_main.go of v1.18.3): it writes its pid, with mode 0660 less the umask, and
// takes no lock.
const writesPid = `umask 026; echo $$ > ` + pidPath + `; echo ready; read end`

// ownPIDs starts a command as pid 1 of a new pid namespace, in a new mount namespace.
const ownPIDs = `exec unshare --pid --fork --kill-child --mount --mount-proc `

// inPod puts a script and its children into the cgroup of one of the pod's containers, where
// the cgroup driver places it.
func inPod(uid string) string {
	return intoCgroup("kubepods/burstable/pod" + uid + "/3a4f")
}

func inPodOfSystemd(uid string) string {
	return intoCgroup("kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" +
		strings.ReplaceAll(uid, "-", "_") + ".slice/cri-containerd-3a4f.scope")
}

func intoCgroup(path string) string {
	path = "/sys/fs/cgroup/" + path
	return `mkdir -p ` + path + `; echo $$ > ` + path + `/cgroup.procs; `
}

// alive starts a script, in which $AGENT is a program named like Cilium's agent, and waits
// until it reports ready; end stops it.
func (n *node) alive(script string) (end func()) {
	n.t.Helper()
	agent := filepath.Join(n.work, "cilium-agent")
	sh, err := os.ReadFile("/bin/sh")
	require.NoError(n.t, err)
	if _, err := os.Stat(agent); err != nil { // otherwise it may be running
		require.NoError(n.t, os.WriteFile(agent, sh, 0o755))
	}
	cmd := n.Command("sh", "-euc", "mkdir -p /var/run/cilium; "+script)
	cmd.Env, cmd.Stderr = append(os.Environ(), "AGENT="+agent, "SAYS="+writesPid, "POD_UID="), os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(n.t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(n.t, err)
	require.NoError(n.t, cmd.Start())
	said, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(n.t, err)
	require.Equal(n.t, "ready\n", said)
	return func() {
		require.NoError(n.t, stdin.Close())
		_ = cmd.Wait() // its standard input has ended
	}
}

// listen makes the agent's socket and listens at it until end is called.
func (n *node) listen() (end func()) {
	n.t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(n.t, err)
	n.shell("mkdir -p /var/run/cilium")
	require.NoError(n.t, n.Do(context.Background(), func(context.Context) error {
		if err := unix.Bind(fd, &unix.SockaddrUnix{Name: sockPath}); err != nil {
			return err
		}
		return unix.Listen(fd, 1)
	}))
	return func() { require.NoError(n.t, unix.Close(fd)) }
}

// fromAPod runs the program in a container that has nothing of the host but its /proc, and the
// capabilities of examples/deploy.
func (n *node) fromAPod(args ...string) (out string) {
	n.t.Helper()
	args = append([]string{binary}, args...)
	return n.shell("set -- " + strings.Join(args, " ") + "\n" + strings.NewReplacer(
		`"$bin" `, `setpriv --bounding-set=-all,+sys_admin,+sys_chroot,+sys_ptrace --inh-caps=-all "$bin" `,
		"\"$@\"\n'", "\"$@\" 2>&1 || echo \"exit $?\"\n'").Replace(container))
}

var cleanState = []string{"CLEAN_CILIUM_STATE=true"}

// Commands that take the node away are refused while an agent is alive, whichever evidence
// shows it, and name the evidence. Evidence goes with the agent; stale files are none.
func TestCLN7_EachCommandIsRefused(t *testing.T) {
	t.Parallel()
	type setUp func(n *node) (end func())
	script := func(script string) setUp { return func(n *node) func() { return n.alive(script) } }
	uninstall, cleanup := []string{"uninstall", "--any-owner"}, []string{"cleanup", "--all-state", "-f"}
	for name, c := range map[string]struct {
		owner string // empty if there is no named owner
		start setUp
		says  string
		all   bool       // an apply of a new owner checks it too
		more  [][]string // commands, for which one kind of evidence is enough
	}{
		"the process of the pid file": {podA, script(ownPIDs + `$AGENT -c "$SAYS"`),
			`process \d+ \(cilium-agent\) runs, and is process 1 that ` + pidPath + ` names`, true, [][]string{
				{"uninstall", "--any-owner", "--dry-run"}, {"uninstall", "--any-owner", "--only", "sysctl"},
				{"uninstall-cni", "--any-owner"}, {"forget", "--any-owner", "/sys/fs/bpf"},
			}},
		"of nobody in particular": {"", script(ownPIDs + `$AGENT -c "$SAYS"`),
			`process \d+ \(cilium-agent\) runs`, true, [][]string{{"uninstall"}, {"uninstall", "--owner", "other"}}},
		"the owner's pod": {podA, script(inPod(podA) + ownPIDs + `sh -c "echo ready; read end"`),
			`process \d+ \(.*\) is in the pod ` + podA + `, which owns the node`, false, nil},
		"the owner's pod with systemd": {podA, script(inPodOfSystemd(podA) + `echo ready; read end`),
			`process \d+ \(.*\) is in the pod ` + podA, false, nil},
		"the process that claimed": {"acme", nil,
			`process \d+, which claimed the node for its owner "acme", runs`, false, nil},
		"a socket": {podA, (*node).listen, "a process listens at " + sockPath, true, nil},
		"a lock": {podA, script(`umask 077; exec 9>` + pidPath + `; flock -n 9; echo ready; read end`),
			pidPath + " is locked", true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			n := newParallelNode(t)
			var end func()
			if c.start == nil {
				end = n.alive(strings.Join(n.args("exec "+binary+" run"), " ") + ` --owner ` + c.owner + ` -- sh -c "echo ready; read end" 2>/run/report`)
			} else {
				n.okEnv([]string{"POD_UID=" + c.owner}, n.args("apply")...)
				end = c.start(n)
			}
			n.write("/var/run/cilium/left", "")
			before := n.state()
			for _, args := range append([][]string{uninstall, cleanup}, c.more...) {
				o := n.exits(1, args...)
				require.Contains(t, o.stderr, "the agent is running: ", args)
				if args[0] == "cleanup" { // the list looks removed otherwise
					require.Regexp(t, `(?m)^nodeinit: nothing was removed: the agent is running: `, o.stderr)
				}
				require.Regexp(t, c.says, o.stderr, args)
				require.Contains(t, o.stderr, map[bool]string{true: "--while-alive", false: "--force"}[args[0] == "cleanup"], args)
			}
			for _, args := range [][]string{uninstall, cleanup} {
				require.Regexp(t, `(?s)`+c.says+`.*exit 1`, n.fromAPod(args...), args)
			}
			n.ok("cleanup", "--all-state", "--dry-run") // is always possible
			n.shell("find /sys/fs/cgroup/pod -depth -type d -exec rmdir {} + ; rm -rf /run/mount")
			require.Empty(t, before.Diff(n.state()))
			if c.all {
				o := n.exitsEnv(1, append(cleanState, "POD_UID="+podB), n.args("apply", "--only", "cleanup")...)
				require.Regexp(t, c.says, o.stderr)
			}
			end()
			n.ok(cleanup...)
			n.ok(uninstall...)
		})
	}
}

func TestCLN7_ByForceOrItsOwnerARunningAgentIsUninstalled(t *testing.T) {
	n := newParallelNode(t)
	apply := func(owner string, more ...string) {
		t.Helper()
		n.okEnv([]string{"POD_UID=" + owner}, n.args("apply", more...)...)
	}
	apply(podA)
	n.alive(inPod(podA) + ownPIDs + `$AGENT -c "echo ready; read end"`)
	for _, args := range [][]string{
		{"uninstall", "--any-owner", "--force"},
		{"uninstall", "--owner", podA},                            // by the owner itself
		{"uninstall-cni", "--owner", podA},                        // in its preStop
		{"cleanup", "--aws-leftovers", "-f"},                      // another agent's leftovers
		{"cleanup", "--ownership", "/run/o", "-f", "--all-state"}, // the same
		{"cleanup", "--all-state", "-f", "--while-alive"},
	} {
		n.write("/run/o", "agent: acme\nstateDirs: [/var/lib/acme]\n")
		n.shell("mkdir -p /var/lib/acme")
		n.ok(args...)
		apply(podA)
	}

	n = newNode(t)
	apply("", "--only", "bpffs")
	n.listen()
	o := n.run("uninstall-cni") // the preStop of an agent without an owner
	require.Zero(t, o.code, o.stderr)
	n.ok("uninstall", "--force")
	n.ok("uninstall")
}

// stale makes the files that a killed agent leaves.
func (n *node) stale() {
	n.t.Helper()
	n.listen()()
	n.shell("umask 026; echo 1 > " + pidPath)
}

func TestCLN7_NothingIsAliveAfterAReboot(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]string{
		"another boot":    `"boot":"another"`,
		"another process": `"start":1`,
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.alive(binary + ` mount-bpffs --owner acme >/dev/null 2>&1; exec ` + binary + ` run --owner acme --only host-paths --dest /run/d --source env:X_ -- sh -c "echo ready; read end" 2>/run/report`)
			n.stale()
			n.exits(1, "uninstall", "--any-owner", "--only", "host-paths")
			n.editClaimant(edit)
			n.ok("uninstall", "--any-owner", "--only", "host-paths")
			n.ok("cleanup", "--all-state", "-f")
		})
	}
}

// editClaimant changes a field of the recorded process that claimed the node.
func (n *node) editClaimant(field string) {
	n.t.Helper()
	name, _, _ := strings.Cut(field, ":")
	process := regexp.MustCompile(`("process":\{[^}]*)` + name + `:("[^"]*"|\d+)`)
	n.editLedger(func(line string) string { return process.ReplaceAllString(line, "${1}"+field) })
}

// In a rolling update the older pod's processes are gone when the newer one's init
// container runs.
func TestCLN7_NothingIsAliveInARollingUpdate(t *testing.T) {
	n := newParallelNode(t)
	older := n.alive(inPod(podA) + `POD_UID=` + podA + ` ` + strings.Join(n.args(binary+" apply"), " ") + ` >/dev/null 2>&1; ` + ownPIDs + `$AGENT -c "$SAYS"`)
	n.exitsEnv(2, append(cleanState, "POD_UID="+podB), n.args("check")...)
	older()
	n.stale()
	n.alive(inPod(podB) + `exec 9>&1; env ` + strings.Join(cleanState, " ") + ` POD_UID=` + podB + ` ` + strings.Join(n.args(binary+" apply"), " ") +
		` >/run/report 2>&1 || { cat /run/report >&2; exit 1; }; echo ready; read end`)
	n.shell("test ! -e " + pidPath)
}

// An init container sees its own pod. The pod's older containers have left a pid file that
// names process 1, which the init container is itself.
func TestCLN7_NothingIsAliveInAnInitContainer(t *testing.T) {
	t.Parallel()
	for env, driver := range map[string]func(string) string{"": inPod, "POD_UID=" + podA: inPodOfSystemd} {
		n := newNode(t)
		n.okEnv([]string{"POD_UID=" + podA}, n.args("apply")...)
		n.alive(driver(podA) + ownPIDs + `sh -c "echo ready; read end"`) // the sandbox
		n.stale()
		if env == "" {
			n.exitsEnv(1, []string{env}, "cleanup", "--all-state", "-f") // from elsewhere it is alive
		}
		n.shell(driver(podA) + env + ` ` + binary + ` cleanup --all-state -f`)
		n.shell("test ! -e " + pidPath)

		n.stale()
		within := strings.ReplaceAll(container, "echo $$ > /sys/fs/cgroup/pod/cgroup.procs", driver(podA))
		out := n.shell("set -- " + binary + " cleanup --all-state -f\n" + env + "\nexport POD_UID\n" + within)
		require.Contains(t, out, "removed")
		n.shell("test ! -e " + pidPath)
	}
}

// Neither the node's pid 1 nor this process counts as the agent.
func TestCLN7_NeitherPid1NorThisProcessIsTheAgent(t *testing.T) {
	n := newParallelNode(t)
	for program, script := range map[string]string{
		n.shell("basename $(readlink /proc/1/exe)"): `echo 1 > /run/acme/pid; exec ` + binary,
		filepath.Base(binary):                       `echo $$ > /run/acme/pid; exec ` + binary,
	} {
		n.shell("mkdir -p /run/acme")
		n.write("/run/acme.yaml", "agent: acme\nstateDirs: [/run/acme]\npidFiles: [/run/acme/pid]\nexecutables: ["+program+"]\n")
		n.shell(script + ` cleanup --ownership /run/acme.yaml --all-state -f`)
		n.shell("test ! -e /run/acme")
	}
}

// The process that claimed the node stands for the agent, even after commands for the same
// owner, and after a restart.
func TestCLN7_TheProcessThatClaimedIsTheLastOfItsOwner(t *testing.T) {
	n := newParallelNode(t)
	agent := binary + ` run --owner acme --only host-paths --dest /run/d --source env:X_ -- sh -c "echo ready; read end" 2>/run/report`
	refused := func(want int) {
		t.Helper()
		n.exits(want, "uninstall", "--any-owner", "--dry-run")
	}
	end := n.alive("exec " + agent)
	refused(1)
	n.ok("mount-bpffs", "--owner", "acme")
	refused(1)
	end()
	refused(2)
	n.ok("mount-bpffs", "--owner", "acme")
	refused(2)
	end = n.alive("exec " + agent)
	refused(1)
	n.ok("mount-bpffs", "--owner", "acme")
	refused(1)
	n.ok("mount-bpffs", "--owner", "other")
	refused(2) // the node has another owner, whose process has ended
	end()
}

// One name for two agents is refused while the pod of the first lives, before anything is changed:
// each would remove the other's configuration. An update of one agent is none of that, nor is what
// comes after an agent that has ended.
func TestPLAN11_ALivingOwnerOfAnotherAgentIsNotSuperseded(t *testing.T) {
	n := newParallelNode(t)
	installs := func(name, network, named string, more ...string) []string {
		conf, plugins := filepath.Join(n.work, name), filepath.Join(n.work, named)
		require.NoError(t, os.WriteFile(conf, []byte(strings.NewReplacer("test-cni", named, `"test"`, `"`+network+`"`).Replace(conflist)), 0o644))
		require.NoError(t, os.MkdirAll(plugins, 0o755))
		for _, name := range []string{named, "loopback"} { // which is no agent's
			require.NoError(t, os.WriteFile(filepath.Join(plugins, name), []byte(plugin), 0o755))
		}
		return append([]string{"install-cni", "--cni-conf", conf, "--cni-conf-name", name, "--plugins", plugins}, more...)
	}
	pods := func(code int, owner string, args []string) outcome {
		t.Helper()
		return n.exitsEnv(code, []string{"POD_UID=" + owner}, args...)
	}
	end, check := n.alive(inPod(podA)+`echo ready; read end`), n.asItWas()
	pods(0, podA, installs("10-flannel.conflist", "cbr0", "flannel"))
	before := n.state()
	cilium := installs("05-cilium.conflist", "cilium", "cilium-cni")
	for _, owner := range []string{podB, ""} {
		o := pods(3, owner, cilium)
		for _, says := range []string{
			"the agent has another owner", "is in the pod " + podA, "10-flannel, cbr0, flannel", "05-cilium, cilium, cilium-cni", "ledger.two-agents", "--agent: ", "--take-over: ",
		} {
			require.Contains(t, o.stderr, says)
		}
	}
	require.Empty(t, before.Diff(n.state()), "nothing is changed")
	pods(0, podB, []string{"mount-bpffs"}) // of several init containers, the first, which has nothing to tell it by
	require.Contains(t, pods(3, podB, cilium).stderr, "is in the pod "+podA)

	pods(0, podB, append(cilium, "--agent=cilium-2")) // both
	n.shell("test -e /etc/cni/net.d/05-cilium.conflist; test -e /etc/cni/net.d/10-flannel.conflist")
	n.ok("uninstall", "--agent=cilium-2", "--owner", podB)

	pods(0, podB, installs("20-flannel.conflist", "mesh", "flannel")) // another file and network, one plugin
	n.shell("test ! -e /etc/cni/net.d/10-flannel.conflist")
	n.alive(inPod(podB) + `echo ready; read end`)
	n.shell("mkdir -p /var/lib/cni/results")
	n.write("/var/lib/cni/results/pod", `{"kind":"cniCacheV1","containerId":"pod","networkName":"mesh","config":"`+base64.StdEncoding.EncodeToString([]byte(n.read("/etc/cni/net.d/20-flannel.conflist")))+`"}`)
	require.Contains(t, unwrapped(pods(0, podC, append(cilium, "--take-over"))), "note: /etc/cni/net.d/20-flannel.conflist is kept: sandboxes need it")
	n.shell("test -e /etc/cni/net.d/20-flannel.conflist; rm -r /var/lib/cni")
	pods(0, podC, cilium)
	n.shell("test ! -e /etc/cni/net.d/20-flannel.conflist")
	end() // of one that owns the node no more
	n.alive(inPod(podC) + `echo ready; read end`)()
	pods(0, podB, installs("10-flannel.conflist", "cbr0", "flannel", "--take-over"))
	n.shell("test ! -e /etc/cni/net.d/05-cilium.conflist")
	n.ok("uninstall", "--owner", podB)
	check()
}
