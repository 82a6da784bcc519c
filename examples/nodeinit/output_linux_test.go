// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// into runs the program on the node with its output going to files.
func (n *node) into(stdout, stderr *os.File, args ...string) (code int) {
	n.t.Helper()
	cmd := n.Command(binary, args...)
	cmd.Env = append(n.env, "PATH="+os.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = stdout, stderr
	var none bytes.Buffer
	return finish(n.t, cmd.Run, &none, &none).code
}

// closedPipe returns a pipe whose reader is closed.
func closedPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	t.Cleanup(func() { w.Close() })
	return w
}

// A reader that stops after the first line interrupts nothing: the exit status is the run's
// own.
func TestPLAN3_AClosedPipeEndsNothingHalfway(t *testing.T) {
	n := newParallelNode(t)
	pipe := closedPipe(t)
	for _, output := range []string{"text", "json"} {
		require.Equal(t, 2, n.into(pipe, pipe, n.args("check", "--output", output)...))
		require.Equal(t, 0, n.into(pipe, pipe, n.args("apply", "--output", output)...))
		n.ok(n.args("check")...) // all is done
		require.Equal(t, 1, n.into(pipe, pipe, n.args("apply", "--source", "file:/run/missing", "--output", output)...))
		require.Equal(t, 64, n.into(pipe, pipe, "aply"))
		require.Equal(t, 1, n.into(pipe, pipe, "status", "--output", output))
		require.Equal(t, 2, n.into(pipe, pipe, "uninstall", "--dry-run", "--output", output))
		require.Equal(t, 0, n.into(pipe, pipe, "uninstall", "--output", output))
	}
	require.Equal(t, 0, n.into(pipe, pipe, "--help"))
	require.Equal(t, 0, n.into(pipe, pipe, "run", "--only", "bpffs", "--", "true"))
	require.Equal(t, 0, n.into(pipe, pipe, "run", "--only", "bpffs", "--", "sh", "-c", "sh -c 'echo x; echo x'; test $? = 141"), "the command's own status")
}

// Output that cannot be written is an error, but the work is done.
func TestPLAN3_AFullDeviceIsAnError(t *testing.T) {
	n := newParallelNode(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	for _, args := range [][]string{
		n.args("check"), n.args("apply"), n.args("apply", "--output", "json"), {"status", "--agent", "other"}, {"status", "--output", "json", "--agent", "other"},
		{"explain", "--source", "file:" + n.source}, {"--help"}, {"--version"}, {"completion", "bash"}, {"cleanup", "--all-state", "--dry-run"},
		{"uninstall", "--dry-run"},
	} {
		said, err := os.Create(n.work + "/said")
		require.NoError(t, err)
		require.Equal(t, 1, n.into(full, said, args...), args)
		require.NoError(t, said.Close())
		text, err := os.ReadFile(said.Name())
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(text), "no space left on device"), "%s: %s", args, text)
	}
	n.ok(n.args("check")...) // all is done
	require.Equal(t, 1, n.into(full, full, "uninstall"))
	n.exits(2, n.args("check")...)
}

// However the demo ends, its directory is removed.
func TestDemoLeavesNoDirectory(t *testing.T) {
	t.Parallel()
	newNode(t) // skips if no node can be made
	hungUp := 1
	if signal.Ignored(unix.SIGHUP) {
		hungUp = 0 // under nohup the demo ignores SIGHUP, as these tests do
	}
	for name, c := range map[string]struct {
		signals []os.Signal
		code    int
	}{
		"by itself":             {nil, 0}, // into a closed pipe
		"interrupted":           {[]os.Signal{unix.SIGINT}, 1},
		"its terminal has gone": {[]os.Signal{unix.SIGHUP}, hungUp},
		"told twice":            {[]os.Signal{unix.SIGTERM, unix.SIGTERM}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cmd := exec.Command(binary, "demo")
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir}
			var none, said bytes.Buffer
			cmd.Stderr = &said
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			for lines := bufio.NewReader(out); ; {
				line, err := lines.ReadString('\n')
				require.NoError(t, err)
				if strings.HasPrefix(line, "--- apply") {
					break
				}
			}
			require.Len(t, entries(t, dir), 1, "it works there")
			require.NoError(t, out.Close())
			for _, s := range c.signals {
				require.NoError(t, cmd.Process.Signal(s))
			}
			require.Equal(t, c.code, finish(t, cmd.Wait, &none, &said).code, &said)
			require.Empty(t, entries(t, dir))
		})
	}
}

func entries(t *testing.T, dir string) []os.DirEntry {
	t.Helper()
	all, err := os.ReadDir(dir)
	require.NoError(t, err)
	return all
}

// onTerminal runs the program with a terminal of 80 columns as its standard output, and
// returns what it has printed there.
func (n *node) onTerminal(code int, args ...string) string {
	n.t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(n.t, err)
	defer master.Close()
	require.NoError(n.t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(n.t, err)
	terminal, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(n.t, err)
	require.NoError(n.t, unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))

	said, err := os.Create(n.work + "/said")
	require.NoError(n.t, err)
	defer said.Close()
	printed := make(chan string)
	go func() {
		text, err := io.ReadAll(master)
		if !errors.Is(err, unix.EIO) { // which is its end
			text = append(text, "\nread: "+err.Error()...)
		}
		printed <- string(text)
	}()
	got := n.into(terminal, said, args...)
	require.NoError(n.t, terminal.Close())
	text := <-printed
	require.Equal(n.t, code, got, "%s: %s", args, text)
	return text
}

// aDuration is a time as a table has it, with the blanks that align it.
var aDuration = regexp.MustCompile(` *\b([0-9]+m)?[0-9.]+(µs|ms|s)\b`)

// What an operator sees on a terminal of 80 columns; the help is in nodeinit*.txt. The only
// escape sequences are the colors of statuses, and elsewhere, or with NO_COLOR, there is none.
func TestPLAN4_PLAN5_WhatAnOperatorSees(t *testing.T) {
	n := newParallelNode(t)
	require.Contains(t, n.onTerminal(2, n.args("check")...), "  bpffs      \x1b[33mwould-change\x1b[0m ")
	require.NotContains(t, n.exits(2, n.args("check")...).stdout, "\x1b")
	for _, env := range []string{"TERM=dumb", "NO_COLOR=1"} {
		n.env = []string{env}
		require.NotContains(t, n.onTerminal(2, n.args("check")...), "\x1b", env)
	}
	n.shell("mkdir /run/plugins; cp " + n.plugins + "/* /run/plugins; cp " + n.conf + " /run/acme.conflist; cp " + n.source + " /run/source.yaml")
	n.write("/run/flags.yaml", "source: file:/run/source.yaml\ndest: /run/agent-config\nplugins: /run/plugins\ncni-conf: /run/acme.conflist\n")
	for _, c := range []struct {
		name, line string
		code       int
	}{
		{"check", "check --config /run/flags.yaml --skip preflight", 2},
		{"apply", "apply --config /run/flags.yaml --owner pod-1", 0},
		{"again", "apply --config /run/flags.yaml --owner pod-1 --only cgroup,bpffs", 0},
		{"failure", "apply --config /run/flags.yaml --owner pod-1 --sysctl net.ipv4.none=1", 1},
		{"quiet", "apply --config /run/flags.yaml --owner pod-1 --sysctl net.ipv4.none=1 -q", 1},
		{"status", "status", 1},
		{"dry-run", "uninstall --dry-run --any-owner", 2},
		{"uninstall", "uninstall --owner pod-1", 0},
		{"nothing", "uninstall", 0},
		{"cleanup", "cleanup", 0},
	} {
		if c.name == "status" {
			n.shell(`sed -i 's/"version":"[^"]*"/"version":"v1.2.3"/' /var/lib/slipway/report.cilium`)
		}
		text := strings.ReplaceAll(n.onTerminal(c.code, strings.Fields(c.line)...), "\r\n", "\n")
		said, err := os.ReadFile(n.work + "/said")
		require.NoError(t, err)
		text = aDuration.ReplaceAllStringFunc(text, func(d string) string { return fmt.Sprintf("%*s", utf8.RuneCountInString(d), "T") })
		text = regexp.MustCompile(`\( *T\)`).ReplaceAllString(text, "(T)")
		require.NotContains(t, text, "\x1b")
		warned := regexp.MustCompile(`time=\S+ `).ReplaceAllString(string(said), "")
		golden(t, "seen/"+c.name+".txt", "$ nodeinit "+c.line+"\n"+text+warned)
	}
}

// A cleanup whose reader has gone removes all that it has found; one whose list cannot be
// written removes nothing.
func TestPLAN3_ACleanupWithoutAReader(t *testing.T) {
	n := newParallelNode(t)
	n.left()
	left := n.state()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	require.Contains(t, n.exits(1, "cleanup", "--all-state").stderr, "give -f")
	require.Equal(t, 1, n.into(full, full, "cleanup", "--all-state", "-f"))
	require.Empty(t, left.Diff(n.state()))
	pipe := closedPipe(t)
	require.Equal(t, 0, n.into(pipe, pipe, "cleanup", "--all-state", "-f"))
	require.Contains(t, n.ok("cleanup", "--all-state", "--dry-run").stdout, "nothing to remove")
}

// A run that fails is drawn too, and so are a check and an uninstall.
func TestATimelineOfAnyRun(t *testing.T) {
	n := newParallelNode(t)
	n.ok(n.args("apply", "--timeline", "/run/apply.svg")...)
	image := n.read("/run/apply.svg")
	require.NoError(t, xml.Unmarshal([]byte(image), new(struct{})), image)
	require.Contains(t, image, ">resolve configuration</text>")
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{0, " ms, unchanged</text>", n.args("apply", "--output", "json")}, {1, " ms, failed</text>", []string{"mount-bpffs", "/proc"}},
		{2, " ms, would-change</text>", n.args("check", "--cgroup-root", "/run/other")}, {0, ">revert</text>", []string{"uninstall"}},
	} {
		n.exits(c.code, append(c.args, "--timeline", "/run/run.svg")...)
		require.Contains(t, n.read("/run/run.svg"), c.says)
	}
	n.exits(64, "build-config", "--watch", "--timeline", "x.svg")
}
