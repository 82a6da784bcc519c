// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// into runs the program on the node with its output going to files.
func (n *node) into(stdout, stderr *os.File, args ...string) (code int) {
	n.t.Helper()
	cmd := n.Command(binary, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
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
	t.Parallel()
	n := newNode(t)
	pipe := closedPipe(t)
	for _, output := range []string{"text", "json"} {
		require.Equal(t, 2, n.into(pipe, pipe, n.args("check", "--output", output)...))
		require.Equal(t, 0, n.into(pipe, pipe, n.args("apply", "--output", output)...))
		require.Zero(t, n.run(n.args("check")...).code, "all is done")
		require.Equal(t, 1, n.into(pipe, pipe, n.args("apply", "--source", "file:/run/missing", "--output", output)...))
		require.Equal(t, 64, n.into(pipe, pipe, "aply"))
		require.Equal(t, 0, n.into(pipe, pipe, "journal", "--output", output))
		require.Equal(t, 2, n.into(pipe, pipe, "uninstall", "--dry-run", "--output", output))
		require.Equal(t, 0, n.into(pipe, pipe, "uninstall", "--output", output))
	}
	require.Equal(t, 0, n.into(pipe, pipe, "--help"))
	require.Equal(t, 0, n.into(pipe, pipe, "run", "--only", "bpffs", "--", "true"))
	require.Equal(t, 0, n.into(pipe, pipe, "run", "--only", "bpffs", "--", "sh", "-c", "sh -c 'echo x; echo x'; test $? = 141"), "the command's own status")
}

// Output that cannot be written is an error, but the work is done.
func TestPLAN3_AFullDeviceIsAnError(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	for _, args := range [][]string{
		n.args("check"), n.args("apply"), n.args("apply", "--output", "json"), {"journal"}, {"journal", "--output", "json"},
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
	require.Zero(t, n.run(n.args("check")...).code, "all is done")
	require.Equal(t, 1, n.into(full, full, "uninstall"))
	require.Equal(t, 2, n.run(n.args("check")...).code)
}

// However the demo ends, its folder is removed.
func TestDemoLeavesNoFolder(t *testing.T) {
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
