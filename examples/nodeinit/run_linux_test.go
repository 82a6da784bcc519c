// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"bufio"
	"bytes"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func (n *node) runArgs(more ...string) []string { return append(n.args("run"), more...) }

func TestPLAN13_TheCommandRunsInThePlaceOfThis(t *testing.T) {
	n := newParallelNode(t)
	const look = "grep -E '^(Sig[ICB]|Shd)' /proc/self/status; ulimit -n; ls /proc/self/fd"
	want := n.shell(look)
	o := n.exits(7, n.runArgs("--", "sh", "-euc", look+"; exit 7")...)
	require.Equal(t, want+"\n", o.stdout, "signals, limits and descriptors are as in a direct start")
	require.Contains(t, o.stderr, "7 steps: 6 changed, 1 skipped", "the report leaves standard output to the command")
	n.ok(n.args("check")...) // the node is ready

	o = n.ok(n.runArgs("--output", "json", "--", "printf", "%s.", "a b", "--skip", "")...)
	require.Equal(t, "a b.--skip..", o.stdout, "arguments after -- belong to the command")
	require.Contains(t, o.stderr, `"unchanged"`)

	// The ledger and the lock are released by then.
	n.ok(n.runArgs("--", binary, "uninstall", "--lock-timeout", "0")...)
}

func TestPLAN13_SignalsAreTheCommandsAndThePidIsThis(t *testing.T) {
	n := newParallelNode(t)
	var stderr bytes.Buffer
	cmd := n.Command(binary, n.runArgs("--", "sh", "-c", `trap 'exit 9' TERM; echo ready; while :; do read x <&3; done 3<>/run/never`)...)
	n.do(func() error { return unix.Mkfifo("/run/never", 0o600) })
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	require.NoError(t, cmd.Process.Signal(unix.SIGTERM))
	_, _ = io.Copy(io.Discard, stdout)
	require.Error(t, cmd.Wait())
	require.Equal(t, 9, cmd.ProcessState.ExitCode(), stderr.String())
}

func TestPLAN13_AFailedPlanStartsNothing(t *testing.T) {
	n := newParallelNode(t)
	before := n.state()
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"failed step":        {n.runArgs("--only", "bpffs", "--bpf-root", "/proc", "--", "touch", "/run/started"), 1, "bpffs"},
		"no configuration":   {n.runArgs("--source", "file:/gone", "--", "touch", "/run/started"), 1, "/gone"},
		"no such command":    {n.runArgs("--", "no-such-command"), 1, "no-such-command"},
		"no command":         {n.runArgs(), 64, "give the command to run after --"},
		"nothing after --":   {n.runArgs("--"), 64, "give the command to run after --"},
		"before --":          {n.runArgs("touch", "--", "/run/started"), 64, "give the command to run after --"},
		"without --":         {n.runArgs("touch", "/run/started"), 64, "give the command to run after --"},
		"unknown capability": {n.runArgs("--drop-capabilities", "SYS_ADMIN,SYS_MAGIC", "--", "touch", "/run/started"), 64, `"SYS_MAGIC" is not the name of a capability`},
	} {
		o := n.exits(c.code, c.args...)
		require.Contains(t, o.stderr, c.says, name)
		require.Empty(t, o.stdout, name)
	}
	require.Empty(t, before.Diff(n.state()))
}

func TestPLAN13_ToldToEndBeforeItStartsNothing(t *testing.T) {
	n := newParallelNode(t)
	release := n.locked("/run/slipway.lock")
	cmd := n.Command(binary, n.runArgs("--", "touch", "/run/started")...)
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && !strings.Contains(lines.Text(), "waiting for the lock") {
	}
	require.NoError(t, cmd.Process.Signal(unix.SIGINT))
	said := ""
	for lines.Scan() {
		said += lines.Text()
	}
	require.Error(t, cmd.Wait())
	require.Equal(t, 1, cmd.ProcessState.ExitCode())
	require.Regexp(t, `lock /run/slipway\.lock: still held after .*: asked to end by a signal, interrupt`, said)
	require.NotContains(t, said, "--lock-timeout", "it was not too short")
	release()
	n.shell("test ! -e /run/started")
}

func TestPLAN13_TheCommandLacksWhatIsDropped(t *testing.T) {
	n := newParallelNode(t)
	sets := func(status string) map[string]string {
		found := map[string]string{}
		for _, m := range regexp.MustCompile(`(?m)^Cap(\w+):\s*([0-9a-f]+)$`).FindAllStringSubmatch(status, -1) {
			found[m[1]] = m[2]
		}
		return found
	}
	have := sets(n.shell("cat /proc/self/status"))
	o := n.ok(n.runArgs("--drop-capabilities", "sys_admin,CAP_SYS_CHROOT, SYS_PTRACE", "--", "cat", "/proc/self/status")...)
	got := sets(o.stdout)
	require.Len(t, got, 5)
	for name, hex := range got {
		before, err := strconv.ParseUint(have[name], 16, 64)
		require.NoError(t, err)
		after, err := strconv.ParseUint(hex, 16, 64)
		require.NoError(t, err)
		const dropped = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_SYS_CHROOT | 1<<unix.CAP_SYS_PTRACE
		require.Equal(t, before&^dropped, after, name)
	}

	o = n.run(n.runArgs("--", "cat", "/proc/self/status")...)
	require.Equal(t, have, sets(o.stdout), "without flags its values equal these")

	cmd := n.Command("setpriv", append([]string{"--bounding-set", "-setpcap", "--inh-caps", "-setpcap", binary},
		n.runArgs("--drop-capabilities", "SYS_ADMIN", "--", "touch", "/run/started")...)...)
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "drop CAP_SYS_ADMIN: operation not permitted (needs CAP_SETPCAP)")
	n.shell("test ! -e /run/started")
}

// The Go runtime leaves some signals alone that are ignored from the start, unless it takes
// them over before main.
func TestPLAN13_SomeSignalsStayIgnored(t *testing.T) {
	n := newParallelNode(t)
	cmd := n.Command("sh", append([]string{"-euc", `trap '' HUP INT TSTP; exec "$@"`, "sh", binary}, n.runArgs("--", "grep", "SigIgn", "/proc/self/status")...)...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	ignored := regexp.MustCompile(`SigIgn:\t([0-9a-f]{16})`).FindSubmatch(out)
	require.NotNil(t, ignored, string(out))
	mask, err := strconv.ParseUint(string(ignored[1]), 16, 64)
	require.NoError(t, err)
	const want = 1<<(unix.SIGHUP-1) | 1<<(unix.SIGINT-1) | 1<<(unix.SIGTSTP-1) // the test's caller may ignore others
	require.Equal(t, uint64(want), mask&want, "%x", mask)
}
