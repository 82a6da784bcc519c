// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/testledger"
	"github.com/slipway-dev/slipway/internal/testns"
)

// What others could have written is not obeyed, whether it is the directory, the file or a
// kept content. The error says what helps.
func TestSEC2_WhatOthersCouldHaveWrittenIsRefused(t *testing.T) {
	testns.Root(t)
	replaced := func(by func(path string) error) func(string) error {
		return func(path string) error { return errors.Join(os.Rename(path, path+".real"), by(path)) }
	}
	for name, tc := range map[string]struct {
		spoil func(path string) error
		says  string
		isDir bool
	}{
		"of another":         {func(path string) error { return os.Chown(path, 1000, 0) }, "belongs to uid 1000", true},
		"for everybody":      {func(path string) error { return os.Chmod(path, 0o777) }, "chmod go-w it", true},
		"of a foreign group": {func(path string) error { return errors.Join(os.Chown(path, 0, 1000), os.Chmod(path, 0o770)) }, "has mode 0770", true},
		"of two names":       {func(path string) error { return os.Link(path, filepath.Join(filepath.Dir(path), "..", "other")) }, "has hard links", false},
		"a link":             {replaced(func(path string) error { return os.Symlink(filepath.Base(path)+".real", path) }), "is a symbolic link", false},
		"a pipe":             {replaced(func(path string) error { return unix.Mkfifo(path, 0o600) }), "is a FIFO", false},
	} {
		for _, what := range []string{".", "ledger", "content.*"} {
			if what == "." && !tc.isDir {
				continue
			}
			t.Run(name+" "+what, func(t *testing.T) {
				root := t.TempDir()
				book, path := opened(t, root), filepath.Join(root, "f")
				original := bytes.Repeat([]byte("original"), 1000)
				require.NoError(t, os.WriteFile(path, original, 0o644))
				require.NoError(t, apply(t, book, ledger.FileWant(path, 0o644, []byte("ours"))))
				found, err := filepath.Glob(filepath.Join(root, "state", what))
				require.NoError(t, err)
				require.Len(t, found, 1)
				require.NoError(t, tc.spoil(found[0]))
				err = undo(t, book)
				require.Equal(t, code.LedgerUntrusted, code.Of(err))
				require.Equal(t, "ledger.untrusted", code.Of(err))
				require.ErrorContains(t, err, tc.says)
				require.ErrorContains(t, err, found[0])
				require.Contains(t, looksLike(t, path), "ours")
			})
		}
	}
}

// A record names kept contents and agents by bare names: no other path is read or removed.
func TestSEC3_NamesOfContentsAreBare(t *testing.T) {
	root := t.TempDir()
	book, path, state := opened(t, root), filepath.Join(root, "f"), filepath.Join(root, "state")
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("original"), 1000), 0o644))
	require.NoError(t, apply(t, book, ledger.FileWant(path, 0o644, []byte("ours"))))
	victim := filepath.Join(root, "victim")
	require.NoError(t, os.Rename(filepath.Join(state, namesIn(t, state)[0]), victim))
	sum := ledger.State{}.WithContent(bytes.Repeat([]byte("original"), 1000)).SHA256
	var file bytes.Buffer
	for line := range bytes.SplitSeq(fileOf(t, state), []byte("\n")) {
		if _, raw, ok := bytes.Cut(line, []byte(" ")); ok {
			raw = bytes.ReplaceAll(raw, []byte(sum), []byte("/../../victim"))
			file.Write(ledger.Line(bytes.ReplaceAll(raw, []byte(`"acme":{`), []byte(`"../x":{`))))
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(state, "ledger"), file.Bytes(), 0o600))
	require.Error(t, undo(t, book))
	require.Contains(t, looksLike(t, path), "ours")
	require.FileExists(t, victim)
	all, err := book.Agents(t.Context())
	require.NoError(t, err)
	require.Equal(t, "acme", all[0].Name)
}

// What a record says that no kind can have written is not obeyed: a path of the kernel's that an
// undoing would put back, or a set-user-id bit.
func TestSEC3_WhatNoKindCanHaveRecordedIsNotObeyed(t *testing.T) {
	root := t.TempDir()
	path, state := filepath.Join(root, "f"), filepath.Join(root, "state")
	require.NoError(t, os.WriteFile(path, []byte("theirs"), 0o755))
	values := map[string]string{}
	k, _ := kept(values)
	book := testledger.Open(t, state, k)
	require.NoError(t, apply(t, book, ledger.FileWant(path, 0o755, []byte("ours")), ledger.Want{Kind: k, Object: "v", To: ledger.State{Type: "value", Value: "1"}}))
	var written []string
	sides := ledger.File()
	sides.Name, sides.Write = "side", func(_ context.Context, object string, _ ledger.State) error {
		written = append(written, object)
		return nil
	}
	book = testledger.Open(t, state, k, sides)
	forge(t, state, func(record map[string]any) {
		switch record["kind"] {
		case "file":
			record["original"].(map[string]any)["mode"] = 0o4755
		case k.Name:
			was := map[string]any{}
			record["intent"] = map[string]any{"to": record["left"], "was": was, "undo": true, "along": []any{map[string]any{
				"kind": "side", "space": "path", "object": "/proc/sys/kernel/hostname", "was": was, "to": was, "back": map[string]any{"type": "file"},
			}}}
		}
	})
	err := undo(t, book)
	require.ErrorContains(t, err, "below /proc")
	require.NotErrorIs(t, err, ledger.ErrRefused)
	require.Empty(t, written)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o755), info.Mode())
	require.Contains(t, looksLike(t, path), "theirs")
}

// forge changes the records of a file, whose sums then are as they should be.
func forge(t *testing.T, state string, change func(record map[string]any)) {
	t.Helper()
	var file bytes.Buffer
	for line := range bytes.SplitSeq(fileOf(t, state), []byte("\n")) {
		_, raw, ok := bytes.Cut(line, []byte(" "))
		if !ok {
			continue
		}
		var record map[string]any
		require.NoError(t, json.Unmarshal(raw, &record))
		change(record)
		raw, err := json.Marshal(record)
		require.NoError(t, err)
		file.Write(ledger.Line(raw))
	}
	require.NoError(t, os.WriteFile(filepath.Join(state, "ledger"), file.Bytes(), 0o600))
}

func TestSEC1_AStateDirectoryThatIsALinkIsRefused(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "real"), 0o700))
	require.NoError(t, os.Symlink("real", filepath.Join(root, "state")))
	require.ErrorContains(t, apply(t, opened(t, root), ledger.FileWant(filepath.Join(root, "f"), 0o644, nil)), "not a directory")
	require.NoFileExists(t, filepath.Join(root, "f"))
}

// Any user who may open the directory can lock it, and stops no process by that.
func TestSEC7_NoOtherUserCanHoldTheLedger(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "state")
	require.NoError(t, os.Mkdir(dir, 0o755))
	f, err := os.Open(dir) // as any user may open it
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	require.NoError(t, apply(t, opened(t, root), ledger.FileWant(filepath.Join(root, "f"), 0o644, nil)))
	require.Equal(t, []string{"ledger"}, namesIn(t, dir), "it has no lock of its own")
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// What is beyond a limit is an error that names the limit and what helps, before anything is
// written. What is recorded stays, and can be undone.
func TestSEC6_ALedgerIsBounded(t *testing.T) {
	values := map[string]string{}
	k, _ := kept(values)
	large := func(path string) ledger.Want {
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Truncate(path, 200<<30))
		return ledger.FileWant(path, 0o600, []byte("x"))
	}
	value := func(object, to string) ledger.Want {
		return ledger.Want{Kind: k, Object: object, To: ledger.State{Type: "value", Value: to}}
	}
	var many []ledger.Want
	for i := range 20_001 {
		many = append(many, value(fmt.Sprint(i), "1"))
	}
	for says, wants := range map[string][]ledger.Want{
		"objects are recorded, and 20000 is the limit: first undo what is no longer wanted": many,
		"bytes, and 4194304 is the limit":                                {value("b", strings.Repeat("x", 5<<20))},
		"its content is larger than 1073741824 bytes, which is too much": {large(filepath.Join(t.TempDir(), "sparse"))},
	} {
		root := t.TempDir()
		book := opened(t, root)
		book.Learn(k)
		first := applied(t, book, "first", ledger.Wants{List: []ledger.Want{value("a", "1")}})
		require.NotEmpty(t, first.Changes)
		require.ErrorContains(t, apply(t, book, wants...), says)
		require.Equal(t, map[string]string{"a": "1"}, values, "nothing was written")
		require.NoError(t, undo(t, opened(t, root, k)))
		require.Empty(t, values)
		require.NoDirExists(t, filepath.Join(root, "state"))
	}
}

// A file that is larger than a ledger ever writes is refused.
func TestSEC6_AnOversizedLedgerIsRefused(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "state"), 0o700))
	path := filepath.Join(root, "state", "ledger")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, 200<<30))
	require.ErrorContains(t, undo(t, opened(t, root)), "67108864")
}

// The time of undoing grows almost linearly with the number of objects, also of those that
// need each other: this takes seconds, where a quadratic order would take many minutes.
func TestSEC6_ManyObjects(t *testing.T) {
	const n = 10_000
	values := map[string]string{}
	k, _ := kept(values)
	var wants []ledger.Want
	for i := range n {
		w := ledger.Want{Kind: k, Object: fmt.Sprint(i), To: ledger.State{Type: "value", Value: "1"}}
		if i > 0 {
			w.Needs = []string{wants[i-1].ID()}
		}
		wants = append(wants, w)
	}
	book := opened(t, t.TempDir())
	require.NoError(t, apply(t, book, wants...))
	require.Len(t, values, n)
	require.NoError(t, undo(t, book))
	require.Empty(t, values)
}

// A change for which there is no space is an error, and the file stays as it was.
func TestPLAN6_AChangeForWhichThereIsNoSpace(t *testing.T) {
	testns.Enter(t, testns.Mount)
	root := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", root, "tmpfs", 0, "size=128k"))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(root, unix.MNT_DETACH)) })
	values := map[string]string{}
	k, wants := kept(values)
	book := opened(t, root, k)
	require.NoError(t, apply(t, book, wants.List...))
	before := fileOf(t, filepath.Join(root, "state"))
	fill := filepath.Join(root, "fill")
	require.ErrorIs(t, os.WriteFile(fill, make([]byte, 1<<20), 0o600), unix.ENOSPC)
	more := ledger.Want{Kind: k, Object: "b", To: ledger.State{Type: "value", Value: strings.Repeat("x", 9000)}}
	for range 2 {
		err := apply(t, book, more)
		require.ErrorIs(t, err, unix.ENOSPC)
		require.ErrorIs(t, err, failure.ErrUnrecorded)
		require.ErrorContains(t, err, root)
		require.Equal(t, before, fileOf(t, filepath.Join(root, "state")))
		require.NotContains(t, values, "b")
	}
	require.NoError(t, os.Remove(fill))
	require.NoError(t, apply(t, book, more))
	require.NoError(t, undo(t, book))
	require.Empty(t, values)
}

// A state directory that cannot be written to fails before anything changes, also in a check.
func TestPLAN17_AStateDirectoryThatCannotBeWritten(t *testing.T) {
	testns.Enter(t, testns.Mount)
	root := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", root, "tmpfs", 0, ""))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(root, unix.MNT_DETACH)) })
	book := opened(t, root)
	require.NoError(t, book.MayApply(t.Context()))
	require.NoError(t, unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	err := book.MayApply(t.Context())
	require.ErrorIs(t, err, unix.EROFS)
	require.ErrorContains(t, err, "name another state directory")
	missing := opened(t, filepath.Join(root, "missing"))
	err = missing.MayApply(t.Context())
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "create it, or name another state directory")
	require.NoError(t, missing.MayUndo(t.Context()), "there is nothing to undo")
	require.NoError(t, undo(t, missing))
}

// A run can be killed between making the directory and the file, and between removing both.
func TestPLAN3_WhatAKilledRunLeavesOfALedgerIsReverted(t *testing.T) {
	const temporary = ".slipway-ABCDEFGHIJKLMNOP.tmp"
	for what, files := range map[string][]string{
		"a directory":       {},
		"kept content":      {"content.00ff"},
		"a temporary file":  {temporary},
		"a report":          {"report.acme"},
		"all of these":      {"content.00ff", temporary, "report.acme"},
		"and another's too": {"content.00ff", "notes.txt"},
	} {
		t.Run(what, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, "state")
			require.NoError(t, os.Mkdir(dir, 0o700))
			require.NoError(t, os.Chmod(dir, 0o700|fs.ModeSticky)) // as a ledger makes it
			for _, name := range files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("{"), 0o600))
			}
			book := opened(t, root)
			needs, err := book.NeedsClaim(t.Context())
			require.NoError(t, err)
			require.Equal(t, len(files) > 0, needs)
			require.NoError(t, undo(t, book))
			if slices.Contains(files, "notes.txt") {
				require.Equal(t, []string{"notes.txt"}, namesIn(t, dir))
				return
			}
			require.NoDirExists(t, dir)
		})
	}
}

// A directory that an administrator has made, or that is a mount point, stays, empty.
func TestPLAN6_AnExistingStateDirectoryIsEmptied(t *testing.T) {
	testns.Enter(t, testns.Mount)
	for what, make := range map[string]func(dir string) error{
		"an administrator's": func(dir string) error { return os.Mkdir(dir, 0o700) },
		"a mount point": func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=1700"))
		},
	} {
		t.Run(what, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, "state")
			require.NoError(t, make(dir))
			t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }) // which only one is
			book, path := opened(t, root), filepath.Join(root, "f")
			require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("x"), 10_000), 0o644))
			require.NoError(t, apply(t, book, ledger.FileWant(path, 0o644, []byte("ours"))))
			require.NoError(t, book.SaveReport(t.Context(), []byte("{}")))
			require.NoError(t, undo(t, book))
			require.Empty(t, namesIn(t, dir))
		})
	}
}

// Processes that change a node without its lock may get errors, but all that was acknowledged
// to one is recorded, and the file stays readable.
func TestPLAN2_WritersWithoutTheLockAreRefused(t *testing.T) {
	root := t.TempDir()
	k, _ := kept(map[string]string{})
	want := func(object string) ledger.Want {
		return ledger.Want{Kind: k, Object: object, To: ledger.State{Type: "value", Value: "1"}}
	}
	first := opened(t, root, k)
	require.NoError(t, apply(t, first, want("first")))
	second := opened(t, root, k)
	interrupts := *k
	interrupts.Write = func(ctx context.Context, object string, to ledger.State) error {
		if object == "b" {
			require.NoError(t, apply(t, second, want("between")))
		}
		return k.Write(ctx, object, to)
	}
	b := want("b")
	b.Kind = &interrupts
	err := apply(t, first, b)
	require.ErrorContains(t, err, "another process has changed it meanwhile: a process that changes a node must hold the node's lock")
	status := statusOf(t, first)
	var recorded []string
	for _, r := range status.Records {
		recorded = append(recorded, r.Object)
	}
	require.Equal(t, []string{"first", "b", "between"}, recorded)
}
