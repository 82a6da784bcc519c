// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/journaltest"
	"github.com/slipway-dev/slipway/internal/testns"
)

func TestHP3_WriteKeepsWhatWasThere(t *testing.T) {
	big := strings.Repeat("0123456789", 500) // over 4 KiB
	for name, prepare := range map[string]func(t *testing.T, path string){
		"absent": func(*testing.T, string) {},
		"empty":  func(t *testing.T, path string) { write(t, path, "", 0o600) },
		"small":  func(t *testing.T, path string) { write(t, path, "small", 0o640) },
		"big":    func(t *testing.T, path string) { write(t, path, big, 0o755) },
		"equal, but for its mode": func(t *testing.T, path string) {
			write(t, path, "ours 0", 0o644)
		},
		"link": func(t *testing.T, path string) { require.NoError(t, os.Symlink("/etc/hostname", path)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
			path := filepath.Join(dir, "file")
			prepare(t, path)
			before := takeSnapshot(t, dir)
			for i := range 3 {
				j, file := openFiles(t, state), journal.File{Content: fmt.Append(nil, "ours ", i)}
				ctx := step(t, j, "files")
				written, err := acme.Written(ctx, j, path, file)
				require.NoError(t, err)
				require.False(t, written)
				require.NoError(t, acme.Write(ctx, j, path, file))
				written, err = acme.Written(ctx, j, path, file)
				require.NoError(t, err)
				require.True(t, written)
				now, err := journal.Snapshot(ctx, path)
				require.NoError(t, err)
				require.True(t, now.Same(journal.FileState(file.Content, 0o600)))
				require.True(t, entries(t, j)[0].Done)

				require.NoError(t, os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)))
				require.NoError(t, acme.Write(ctx, j, path, file))
				info, err := os.Stat(path)
				require.NoError(t, err)
				require.Equal(t, time.Unix(1, 0), info.ModTime(), "it was already so")
			}
			_, err := openFiles(t, state).RevertAll(t.Context())
			require.NoError(t, err)
			require.Equal(t, before, takeSnapshot(t, dir))
			require.NoDirExists(t, state)
		})
	}
}

// Without a journal nothing is recorded; neither is a file that others have already written the
// same.
func TestHP3_WriteRecordsWhatItChanges(t *testing.T) {
	path, state := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "state")
	file := journal.File{Content: []byte("ours"), Mode: 0o644}
	require.NoError(t, acme.Write(t.Context(), nil, path, file))
	j := openFiles(t, state)
	require.NoError(t, acme.Write(step(t, j, "files"), j, path, file))
	require.Empty(t, entries(t, j))
	require.NoDirExists(t, state)
	require.ErrorIs(t, acme.Write(t.Context(), nil, filepath.Join(path+"-missing", "file"), file), fs.ErrNotExist)
}

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

// An object that could not be restored is not replaced, and one that is not a file is refused.
func TestHP3_WriteRefuses(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "x")
	file := journal.File{Content: []byte("ours")}
	for want, make := range map[string]func() error{
		"it is a directory": func() error { return os.Mkdir(path, 0o755) },
		"it is a FIFO":      func() error { return unix.Mkfifo(path, 0o600) },
		"it is a socket":    func() error { return unix.Mknod(path, unix.S_IFSOCK|0o600, 0) },
	} {
		require.NoError(t, make())
		for _, j := range []*journal.Journal{nil, openFiles(t, filepath.Join(t.TempDir(), "state"))} {
			_, err := acme.Written(step(t, j, "files"), j, path, file)
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, acme.Write(step(t, j, "files"), j, path, file), want)
			require.ErrorContains(t, err, path)
			if j != nil {
				require.Empty(t, entries(t, j))
			}
		}
		require.NoError(t, os.Remove(path))
	}
	for want, file := range map[string]journal.File{
		"more than permission bits": {Mode: 0o755 | fs.ModeSetuid}, "0:-1 is invalid": {GID: -1},
	} {
		_, err := acme.Written(t.Context(), nil, path, file)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, acme.Write(t.Context(), nil, path, file), want)
	}
	require.NoFileExists(t, path)
}

// A failed write leaves the file as it was, and no entry that would later claim it.
func TestHP3_AWriteThatFailsIsNotRecorded(t *testing.T) {
	testns.Enter(t, testns.Mount)
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "theirs", 0o644)
	require.NoError(t, unix.Mount(path, path, "", unix.MS_BIND, ""))
	j := openFiles(t, filepath.Join(t.TempDir(), "state"))
	ctx := step(t, j, "files")
	for range 2 {
		require.ErrorIs(t, acme.Write(ctx, j, path, journal.File{Content: []byte("ours"), Any: true}), unix.EBUSY)
		require.Empty(t, entries(t, j))
	}
	require.NoError(t, unix.Unmount(path, 0))
	require.NoError(t, acme.Write(ctx, j, path, journal.File{Content: []byte("ours")}))
	require.NoError(t, unix.Mount(path, path, "", unix.MS_BIND, ""))
	require.ErrorIs(t, acme.Write(ctx, j, path, journal.File{Content: []byte("anew")}), unix.EBUSY)
	require.NoError(t, unix.Unmount(path, 0))
	require.NoError(t, j.Revert(ctx), "the state left before")
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "theirs", string(content))
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1)
}

// The journal keeps neither a credential nor the file it replaces; undoing removes the
// credential, and reports that.
func TestHP3_NoSecretLiesInTheJournal(t *testing.T) {
	big := strings.Repeat("their token", 1000)
	for name, original := range map[string]string{"absent": "", "small": "their token", "big": big} {
		dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
		path := filepath.Join(dir, "file")
		if original != "" {
			write(t, path, original, 0o640)
		}
		j := openFiles(t, state)
		ctx := step(t, j, "files")
		for _, content := range []string{"our token 1", "our token 2"} {
			require.NoError(t, acme.Write(ctx, j, path, journal.File{Content: []byte(content), Secret: true}))
		}
		files, err := os.ReadDir(state)
		require.NoError(t, err)
		require.Len(t, files, 1, name)
		record, err := os.ReadFile(filepath.Join(state, files[0].Name()))
		require.NoError(t, err)
		for _, content := range []string{"their token", "our token"} {
			require.NotContains(t, string(record), content)
			require.NotContains(t, string(record), encoded(content))
		}
		want := "remove file " + path
		if original != "" {
			want += ": what it replaced was not kept, as asked"
		}
		changes, err := j.CheckRevert(ctx)
		require.NoError(t, err)
		require.Equal(t, []string{want}, changes)
		require.NoError(t, j.Revert(ctx))
		require.NoFileExists(t, path)
		require.NoDirExists(t, state)
	}
}

// encoded is the beginning of the JSON encoding of these bytes.
func encoded(content string) string {
	text, _ := journal.State{Content: []byte(content)}.MarshalJSON()
	_, text64, _ := strings.Cut(string(text), `"content":"`)
	return text64[:8]
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

// A file that others refresh is left to them, until another one is wanted.
func TestHP3_WhatIsRefreshedIsAsWanted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "of an older installation", 0o600)
	j := openFiles(t, filepath.Join(t.TempDir(), "state"))
	ctx := step(t, j, "files")
	file := journal.File{Content: []byte("ours"), Any: true}
	written := func() bool {
		t.Helper()
		is, err := acme.Written(ctx, j, path, file)
		require.NoError(t, err)
		return is
	}
	require.False(t, written(), "it is not ours")
	require.NoError(t, acme.Write(ctx, j, path, file))
	require.NoError(t, durable.WriteFile(path, 0o640, []byte("refreshed")))
	require.True(t, written())
	require.NoError(t, acme.Write(ctx, j, path, file))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "refreshed", string(content))

	for _, file = range []journal.File{{Content: []byte("ours, anew"), Any: true}, {Content: []byte("ours, anew"), Mode: 0o644, Any: true}} {
		require.False(t, written(), "another file is wanted")
		require.NoError(t, acme.Write(ctx, j, path, file))
		require.NoError(t, durable.WriteFile(path, 0o640, []byte("refreshed")))
		require.True(t, written())
	}
	file.Any = false
	require.False(t, written())
	require.NoError(t, acme.Write(ctx, j, path, file))
	require.False(t, entries(t, j)[0].Any)
	file.Any = true
	require.False(t, written(), "the record does not allow rewrites")
	require.NoError(t, acme.Write(ctx, j, path, file))
	require.True(t, entries(t, j)[0].Any)
	require.NoError(t, os.Remove(path))
	require.False(t, written())
	require.NoError(t, acme.Write(ctx, j, path, file))
	require.NoError(t, durable.WriteFile(path, 0o640, []byte("refreshed")))
	require.NoError(t, j.Revert(ctx))
	content, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "of an older installation", string(content))
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
	for i := range 60 {
		node := t.TempDir()
		path := filepath.Join(node, "resolv.conf")
		write(t, path, "nameserver 192.0.2.1\n", 0o640)
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), exampleEnv+"="+node)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		require.True(t, bufio.NewScanner(out).Scan())
		<-time.After(time.Duration(i) * 503 * time.Microsecond)
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
			require.Contains(t, []string{"resolv.conf", "lock"}, file.Name(), "killed after %d steps of 503µs", i)
		}
	}
}
