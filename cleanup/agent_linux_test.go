// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/testns"
)

func TestCLN7_LiveAgent(t *testing.T) {
	testns.Root(t)
	lock := func(kind string, f *os.File) error {
		if kind == "flock" {
			return unix.Flock(int(f.Fd()), unix.LOCK_EX)
		}
		return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	}
	for _, kind := range []string{"flock", "fcntl"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			pidFile := filepath.Join(dir, "cilium", "cilium.pid")
			files(t, dir, "cilium/x")
			require.NoError(t, os.WriteFile(pidFile, []byte("4711\n"), 0o644))
			f, err := os.OpenFile(pidFile, os.O_RDWR, 0)
			require.NoError(t, err)
			defer f.Close()
			require.NoError(t, lock(kind, f))

			c := stateOnly(filepath.Join(dir, "cilium"))
			c.Ownership.PidFiles = []string{filepath.Join(dir, "none", "x.pid"), pidFile}
			changes, err := c.Check(context.Background())
			require.NoError(t, err, "looking is always possible")
			require.Len(t, changes, 1)
			err = c.Apply(context.Background())
			require.ErrorIs(t, err, cleanup.ErrAgentAlive)
			require.ErrorContains(t, err, pidFile+" is locked by process 4711")
			require.FileExists(t, filepath.Join(dir, "cilium", "x"))

			require.NoError(t, f.Close()) // the agent ends; its pid file is stale now
			apply(t, c)
			require.NoDirExists(t, filepath.Join(dir, "cilium"))
			require.NoError(t, c.Apply(context.Background()))
		})
	}
}

// The number in a pid file that nobody locks may be anybody's.
func TestCLN7_StalePidOfALiveProcess(t *testing.T) {
	testns.Root(t)
	dir := t.TempDir()
	files(t, dir, "cilium/x")
	c := stateOnly(filepath.Join(dir, "cilium"))
	c.Ownership.PidFiles = []string{filepath.Join(dir, "cilium", "cilium.pid")}
	require.NoError(t, os.WriteFile(c.Ownership.PidFiles[0], []byte("1"), 0o644))
	apply(t, c)
	require.NoDirExists(t, filepath.Join(dir, "cilium"))
}

// Whoever may read a pid file can lock it, and holds nobody up by that.
func TestSEC7_AStrangersLockIsNoAgent(t *testing.T) {
	testns.Root(t)
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	files(t, dir, "cilium/x")
	c := stateOnly(filepath.Join(dir, "cilium"))
	c.Ownership.PidFiles = []string{filepath.Join(dir, "cilium", "cilium.pid")}
	require.NoError(t, os.WriteFile(c.Ownership.PidFiles[0], []byte("1"), 0o644))

	stranger := exec.Command("flock", "-x", c.Ownership.PidFiles[0], "-c", "echo held && read -r end")
	stranger.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	stranger.Dir = "/"
	stdin, err := stranger.StdinPipe()
	require.NoError(t, err)
	stdout, err := stranger.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, stranger.Start())
	said, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "held\n", said)

	apply(t, c)
	require.NoDirExists(t, filepath.Join(dir, "cilium"))
	require.NoError(t, stdin.Close())
	_ = stranger.Wait() // its standard input has ended
}

// A FIFO that somebody holds open, and writes nothing into, keeps nobody waiting.
func TestSEC5_APidFileThatIsAFIFO(t *testing.T) {
	testns.Root(t)
	dir := t.TempDir()
	files(t, dir, "cilium/x")
	c := stateOnly(filepath.Join(dir, "cilium"))
	fifo := filepath.Join(dir, "cilium", "cilium.pid")
	c.Ownership.PidFiles = []string{fifo}
	require.NoError(t, unix.Mkfifo(fifo, 0o644))
	writer, err := os.OpenFile(fifo, os.O_RDWR, 0)
	require.NoError(t, err)
	applied := make(chan error, 1)
	go func() { applied <- c.Apply(context.Background()) }()
	select {
	case err = <-applied:
	case <-time.After(20 * time.Second):
		t.Error("it waits for what the FIFO's writer has to say")
	}
	require.NoError(t, writer.Close())
	require.ErrorContains(t, err, fifo+": it is a FIFO, not a regular file")
	require.FileExists(t, filepath.Join(dir, "cilium", "x"))
}
