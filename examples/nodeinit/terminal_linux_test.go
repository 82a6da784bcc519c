// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

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

// On a terminal each line fits, and the only escape sequence is the one that replaces the
// line of a step that runs. Elsewhere there is none, and no colour anywhere.
func TestOnATerminalOutputFits80Columns(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.left()
	n.write("/run/c.yaml", "mtu: 9000\n")
	for _, c := range []struct {
		code int
		args []string
	}{
		{2, n.args("check")}, {0, n.args("apply")}, {0, n.args("apply")}, {0, n.args("check")}, {1, n.args("apply", "--sysctl", "net.ipv4.none=1")},
		{1, []string{"status"}}, {0, []string{"journal"}}, {0, []string{"explain", "--source", "file:/run/c.yaml"}},
		{0, []string{"cleanup", "--all-state", "--dry-run"}}, {2, []string{"uninstall", "--dry-run"}}, {0, []string{"uninstall"}},
		{0, []string{"cleanup", "--all-state", "-f"}}, {0, []string{"--help"}},
	} {
		text := strings.ReplaceAll(n.onTerminal(c.code, c.args...), "\r\n", "\n")
		for line := range strings.SplitSeq(text, "\n") {
			shown := line[strings.LastIndex(line, "\r")+1:]
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimPrefix(shown, "\x1b[K")), 80, "%s: %q", c.args, line)
		}
		require.NotContains(t, strings.ReplaceAll(text, "\r\x1b[K", ""), "\x1b", c.args)
	}
	for _, args := range [][]string{n.args("check"), n.args("apply"), {"status"}, {"journal"}, {"uninstall"}} {
		o := n.run(args...)
		require.NotContains(t, o.stdout+o.stderr, "\x1b", args)
	}
}

// A cleanup whose reader has gone removes all that it has found; one whose list cannot be
// written removes nothing.
func TestPLAN3_ACleanupWithoutAReader(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.left()
	left := n.state()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	require.Equal(t, 1, n.into(full, full, "cleanup", "--all-state", "-f"))
	require.Empty(t, left.Diff(n.state()))
	pipe := closedPipe(t)
	require.Equal(t, 0, n.into(pipe, pipe, "cleanup", "--all-state", "-f"))
	require.Contains(t, n.ok("cleanup", "--all-state", "--dry-run").stdout, "nothing to remove")
}
