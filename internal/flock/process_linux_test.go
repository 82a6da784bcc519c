// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package flock_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/flock"
)

const helperEnv = "SLIPWAY_FLOCK_TEST_HELPER"

func itoa(n int) string { return strconv.Itoa(n) }

// TestMain plays the other processes of some tests.
func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(helperEnv) {
	case "":
		os.Exit(m.Run())
	case "hold":
		err = hold(os.Args[1])
	case "count":
		err = count(os.Args[1], os.Args[2])
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

// count adds one to the number in a file, many times; it is an error if another process
// does so at the same time.
func count(path, counter string) error {
	for range rounds {
		unlock, err := flock.File{Path: path}.Lock(context.Background())
		if err != nil {
			return err
		}
		busy, err := os.OpenFile(counter+".busy", os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		if err := increment(counter); err != nil {
			return err
		}
		if err := os.Remove(busy.Name()); err != nil {
			return err
		}
		_ = busy.Close()
		if err := unlock(); err != nil {
			return err
		}
	}
	return nil
}

func increment(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(content))
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(itoa(n+1)), 0o600)
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
	dir := t.TempDir()
	path, counter := filepath.Join(dir, "lock"), filepath.Join(dir, "counter")
	require.NoError(t, os.WriteFile(counter, []byte("0"), 0o600))
	const processes = 8
	failures := make(chan error, processes)
	for range processes {
		cmd := helper(t, "count", path, counter)
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
	content, err := os.ReadFile(counter)
	require.NoError(t, err)
	require.Equal(t, itoa(processes*rounds), string(content))
}
