// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/journaltest"
	"github.com/slipway-dev/slipway/internal/testns"
)

func TestHP3_WriteHasModeAndOwnerWhateverTheUmask(t *testing.T) {
	testns.Enter(t, testns.Mount) // a thread with its own umask
	unix.Umask(0o077)
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o777|os.ModeSetgid))
	require.NoError(t, os.Chown(dir, 0, 7)) // files get its group
	for _, file := range []journal.File{
		{Mode: 0o664}, {UID: 1000, GID: 1001, Mode: 0o640}, {GID: 1001, Mode: 0o660}, {},
	} {
		path := filepath.Join(dir, "file")
		require.NoError(t, acme.Write(t.Context(), nil, path, file))
		now, err := journal.Snapshot(t.Context(), path)
		require.NoError(t, err)
		want := file.Mode
		if want == 0 {
			want = 0o600
		}
		require.Equal(t, []any{uint32(want), file.UID, file.GID}, []any{now.Mode, now.UID, now.GID})
		written, err := acme.Written(t.Context(), nil, path, file)
		require.NoError(t, err)
		require.True(t, written)
	}
}

// Wherever a write that replaces a secret is killed, undoing removes our file and nothing else.
func TestHP3_KilledWithASecret(t *testing.T) {
	file := journal.File{Content: []byte("ours"), Secret: true}
	for name, tc := range map[string]struct {
		after func(t *testing.T, path string) // kills the process
		begun bool
		stays bool
	}{
		"before it was replaced": {begun: true, stays: true, after: func(t *testing.T, path string) { write(t, path, "theirs", 0o640) }},
		"before it was complete": {begun: true, after: func(*testing.T, string) {}},
		"while it was removed":   {after: func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) }},
	} {
		path, state := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "state")
		write(t, path, "theirs", 0o640)
		before := takeSnapshot(t, filepath.Dir(path))
		j := openFiles(t, state)
		require.NoError(t, acme.Write(step(t, j, "files"), j, path, file))
		if tc.begun {
			journaltest.Begun(t, state)
		}
		tc.after(t, path)
		j = openFiles(t, state)
		require.NoError(t, j.Revert(step(t, j, "files")), name)
		if tc.stays {
			require.Equal(t, before, takeSnapshot(t, filepath.Dir(path)), name)
			continue
		}
		require.NoFileExists(t, path, name)
	}
}

// exampleEnv makes the test binary apply and revert the example's step, forever, on the node
// that it names.
const exampleEnv = "SLIPWAY_TEST_JOURNAL_EXAMPLE"

func TestMain(m *testing.M) {
	if node := os.Getenv(exampleEnv); node != "" {
		applyExample(node)
		return
	}
	os.Exit(m.Run())
}

// applyExample applies and reverts until it is killed.
func applyExample(node string) {
	ctx, path := context.Background(), filepath.Join(node, "resolv.conf")
	fmt.Println("ready")
	for range 1000 { // bounded, in case the test dies first
		_, err1 := resolver{path, "127.0.0.1"}.plan(node).Apply(ctx)
		_, err2 := resolver{path, "::1"}.plan(node).Apply(ctx)
		_, err3 := resolver{path: path}.plan(node).RevertAll(ctx)
		if err := errors.Join(err1, err2, err3); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}

// Wherever the example is killed, the original can be restored, and the next run makes the
// wanted file.
func TestPLAN3_TheExampleKilledAnywhere(t *testing.T) {
	t.Parallel()
	for i := range 20 {
		node := t.TempDir()
		path := filepath.Join(node, "resolv.conf")
		write(t, path, "nameserver 192.0.2.1\n", 0o640)
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), exampleEnv+"="+node)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		require.True(t, bufio.NewScanner(out).Scan())
		<-time.After(time.Duration(i) * 1503 * time.Microsecond)
		require.NoError(t, cmd.Process.Kill())
		require.ErrorContains(t, cmd.Wait(), "signal: killed")

		if i%2 == 0 {
			_, err := resolver{path, "::1"}.plan(node).Apply(t.Context())
			require.NoError(t, err)
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, "nameserver ::1\n", string(content))
		}
		_, err = resolver{path: path}.plan(node).RevertAll(t.Context())
		require.NoError(t, err, i)
		now, err := journal.Snapshot(t.Context(), path)
		require.NoError(t, err)
		require.True(t, now.Same(journal.FileState([]byte("nameserver 192.0.2.1\n"), 0o640)), i)
		left, err := os.ReadDir(node)
		require.NoError(t, err)
		for _, file := range left {
			require.Contains(t, []string{"resolv.conf", "lock"}, file.Name(), "killed after %d steps of 1503µs", i)
		}
	}
}

// A file that others rewrite is undone whatever its content, and wherever the step was killed.
func TestHP3_AFileIsUndoneWhateverItsContent(t *testing.T) {
	for _, original := range []string{"", "original"} {
		for _, begun := range []bool{false, true} {
			path, state := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "state")
			if original != "" {
				write(t, path, original, 0o640)
			}
			before := takeSnapshot(t, filepath.Dir(path))
			j := openFiles(t, state)
			require.NoError(t, acme.Write(step(t, j, "files"), j, path, journal.File{Content: []byte("ours"), Any: true}))
			if begun {
				journaltest.Begun(t, state)
			}
			require.NoError(t, os.Remove(path))
			write(t, path, "refreshed", 0o644)
			j = openFiles(t, state)
			require.NoError(t, j.Revert(step(t, j, "files")), "%q, killed: %t", original, begun)
			require.Equal(t, before, takeSnapshot(t, filepath.Dir(path)), "%q, killed: %t", original, begun)
		}
	}
}

// An object of another type in the place of such a file is not ours.
func TestHP3_WhatIsNoFileAnyMoreIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	j := openFiles(t, filepath.Join(t.TempDir(), "state"))
	ctx := step(t, j, "files")
	require.NoError(t, acme.Write(ctx, j, path, journal.File{Any: true}))
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Symlink("elsewhere", path))
	require.ErrorIs(t, j.Revert(ctx), journal.ErrChanged)
	require.NoError(t, os.Remove(path))
	write(t, path, "", 0o600)
	require.NoError(t, os.Truncate(path, 1<<40), "it is not read to the end")
	require.NoError(t, j.Revert(ctx))
	require.NoFileExists(t, path)
}
