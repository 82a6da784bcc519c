// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package flock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/flock"
)

const helperEnv = "SLIPWAY_FLOCK_TEST_HELPER"

// TestMain plays the other processes of some tests.
func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(helperEnv) {
	case "":
		os.Exit(m.Run())
	case "hold":
		err = hold(os.Args[1])
	case "collide":
		err = collide(os.Args[1])
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// hold holds the lock until its standard input ends.
func hold(path string) error {
	unlock, err := flock.File{Path: path, Owner: "holder"}.Lock(context.Background())
	if err != nil {
		return err
	}
	fmt.Println("locked")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return unlock()
}

const rounds = 40

// collide takes the lock many times; it is an error if another process has it too.
func collide(path string) error {
	for range rounds {
		unlock, err := flock.File{Path: path}.Lock(context.Background())
		if err != nil {
			return err
		}
		busy, err := os.OpenFile(path+".busy", os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		if err := errors.Join(os.Remove(busy.Name()), busy.Close(), unlock()); err != nil {
			return err
		}
	}
	return nil
}

func helper(t *testing.T, mode string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), helperEnv+"="+mode)
	return cmd
}

// holder starts a process that holds the lock until release is called.
func holder(t *testing.T, path string) (cmd *exec.Cmd, release func()) {
	t.Helper()
	cmd = helper(t, "hold", path)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "locked\n", line)
	return cmd, func() { require.NoError(t, stdin.Close()) }
}

func TestPLAN2_KilledHolderFreesIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, _ := holder(t, path)
	require.NoError(t, first.Process.Kill())
	require.ErrorContains(t, first.Wait(), "killed")
	require.Equal(t, first.Process.Pid, read(t, path).PID, "its file is left")

	unlock, err := flock.File{Path: path, Timeout: -1}.Lock(t.Context())
	require.NoError(t, err)
	require.Equal(t, os.Getpid(), read(t, path).PID)
	require.NoError(t, unlock())
}

func TestPLAN2_EightProcessesNeverOverlap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	const processes = 8
	failures := make(chan error, processes)
	for range processes {
		cmd := helper(t, "collide", path)
		go func() {
			out, err := cmd.CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			failures <- err
		}()
	}
	for range processes {
		require.NoError(t, <-failures)
	}
}
