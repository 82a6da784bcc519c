// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/testledger"
	"github.com/slipway-dev/slipway/internal/testns"
)

// opened is the ledger below root, as a process opens it.
func opened(t *testing.T, root string, kinds ...*ledger.Kind) *ledger.Book {
	t.Helper()
	return testledger.OpenFor(t, filepath.Join(root, "state"), "acme", kinds...)
}

func apply(t *testing.T, book *ledger.Book, wants ...ledger.Want) error {
	t.Helper()
	_, err := book.Apply(t.Context(), "s", ledger.Wants{List: wants})
	return err
}

func undo(t *testing.T, book *ledger.Book) error {
	t.Helper()
	_, err := book.Undo(t.Context(), nil)
	return err
}

// looksLike describes a file: type, mode, owner, content.
func looksLike(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "none"
	}
	require.NoError(t, err)
	st := info.Sys().(*syscall.Stat_t)
	out := info.Mode().String() + " " + string(rune('0'+st.Uid%10)) + string(rune('0'+st.Gid%10))
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		require.NoError(t, err)
		return out + " -> " + target
	case info.Mode().IsRegular():
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		return out + " " + string(content)
	}
	return out
}

// Whatever a file replaces comes back as it was: a file of any size, with its mode, or a
// link.
func TestPLAN6_OriginalsOfFilesComeBack(t *testing.T) {
	large := string(bytes.Repeat([]byte("large"), 100_000))
	for name, before := range map[string]func(path string) error{
		"none":        func(string) error { return nil },
		"a file":      func(path string) error { return os.WriteFile(path, []byte("theirs"), 0o640) },
		"a large one": func(path string) error { return os.WriteFile(path, []byte(large), 0o600) },
		"an empty":    func(path string) error { return os.WriteFile(path, nil, 0o644) },
		"a link":      func(path string) error { return os.Symlink("/nowhere\xff", path) },
		"a sticky": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o644), os.Chmod(path, 0o644|fs.ModeSticky))
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			path, book := filepath.Join(root, "a\xff \\ [b]"), opened(t, root)
			require.NoError(t, before(path))
			was := looksLike(t, path)
			for _, content := range []string{"ours", large + "ours", "ours"} { // short and long
				require.NoError(t, apply(t, book, ledger.FileWant(path, 0o644, []byte(content))))
				require.Contains(t, looksLike(t, path), content)
				look := checked(t, book, "s", ledger.Wants{List: []ledger.Want{ledger.FileWant(path, 0o644, []byte(content))}})
				require.Empty(t, look.Changes)
			}
			require.NoError(t, undo(t, opened(t, root)))
			require.Equal(t, was, looksLike(t, path))
			require.NoDirExists(t, filepath.Join(root, "state"))
			entries, err := os.ReadDir(root)
			require.NoError(t, err)
			require.LessOrEqual(t, len(entries), 1, "nothing else is left")
		})
	}
}

// Content from a source is read once to be written, or to be compared with a file that may
// already have it, and written only if it differs.
func TestPLAN6_ASourceIsReadOnce(t *testing.T) {
	root := t.TempDir()
	path, book := filepath.Join(root, "plugin"), opened(t, root)
	reads := 0
	want := func(content string) ledger.Want {
		return ledger.FileFrom(path, 0o755, func() (io.ReadCloser, error) {
			reads++
			return io.NopCloser(bytes.NewReader([]byte(content))), nil
		})
	}
	require.NoError(t, apply(t, book, want("one")))
	require.Equal(t, 1, reads)
	before, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, apply(t, book, want("one")))
	after, err := os.Stat(path)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after))
	require.Equal(t, 2, reads)
	look := checked(t, book, "s", ledger.Wants{List: []ledger.Want{want("one")}})
	require.Empty(t, look.Changes)
	require.NoError(t, apply(t, book, want("two, longer")))
	require.Equal(t, 5, reads)
	require.Contains(t, looksLike(t, path), "-rwxr-xr-x")
	require.NoError(t, undo(t, book))
	require.Equal(t, "none", looksLike(t, path))
}

// A file is read before it is written, and once to verify what was written.
func TestPLAN6_WhatWasWrittenIsReadOnce(t *testing.T) {
	root, reads, k := t.TempDir(), 0, ledger.File()
	read := k.Read
	k.Read = func(ctx context.Context, path string) (ledger.State, error) {
		reads++
		return read(ctx, path)
	}
	book, err := (&ledger.Ledger{Dir: filepath.Join(root, "state"), Agent: "a", NoOwner: true, Kinds: []*ledger.Kind{k}}).Open(t.Context())
	require.NoError(t, err)
	defer book.Close()
	for _, content := range []string{"one", "another"} {
		want := ledger.FileWant(filepath.Join(root, "plugin"), 0o755, []byte(content))
		want.Kind, reads = k, 0
		require.NoError(t, apply(t, book, want))
		require.Equal(t, 2, reads, content)
	}
}

// A large file that is as it was left is compared with its source by reading both, whatever its
// size and time say.
func TestPLAN6_CNI1_ALargeFileIsComparedByReading(t *testing.T) {
	old, other := bytes.Repeat([]byte("a"), 1<<20), bytes.Repeat([]byte("a"), 1<<20)
	other[1<<19] = 'b'
	for name, tc := range map[string]struct {
		source, present []byte
		changes         int
	}{
		"equal": {old, old, 0}, "another source": {other, old, 1}, "another file": {old, other, 1}, "a longer source": {append(old, 'a'), old, 1},
		"both are others": {other, other, 0},
	} {
		root := t.TempDir()
		path, book := filepath.Join(root, "plugin"), opened(t, root)
		from := func(content []byte) ledger.Wants {
			return ledger.Wants{List: []ledger.Want{ledger.FileFrom(path, 0o755, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })}}
		}
		_, err := book.Apply(t.Context(), "s", from(old))
		require.NoError(t, err)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, tc.present, 0o755)) // in place
		require.NoError(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
		look, err := book.Check(t.Context(), "s", from(tc.source))
		require.NoError(t, err)
		require.Len(t, look.Changes, tc.changes, name)
		_, err = book.Apply(t.Context(), "s", from(tc.source))
		require.NoError(t, err)
		now, err := os.ReadFile(path)
		require.NoError(t, err)
		require.True(t, bytes.Equal(tc.source, now), name)
	}
}

// Missing directories are made with a file, and go with it, but not while others use them.
func TestPLAN6_DirectoriesGoWithWhatIsInThem(t *testing.T) {
	root := t.TempDir()
	book, dir := opened(t, root), filepath.Join(root, "a", "b")
	wants, err := ledger.DirWants(dir, 0o750)
	require.NoError(t, err)
	require.Len(t, wants, 2)
	wants = append(wants, ledger.FileFrom(filepath.Join(dir, "f"), 0o644, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(nil)), nil }))
	require.NoError(t, apply(t, book, wants...))
	require.Contains(t, looksLike(t, dir), "drwxr-x---")
	theirs := filepath.Join(root, "a", "theirs")
	require.NoError(t, os.WriteFile(theirs, nil, 0o644))
	err = undo(t, book)
	require.ErrorIs(t, err, ledger.ErrChanged)
	require.ErrorContains(t, err, "it holds theirs")
	require.NoDirExists(t, dir)
	require.NoError(t, os.Remove(theirs))
	require.NoError(t, undo(t, book))
	require.NoDirExists(t, filepath.Join(root, "a"))
}

// What is left to others for good is left with the directories that lead to it, whether it is
// still recorded or not.
func TestPLAN6_WhatIsAcceptedKeepsItsDirectories(t *testing.T) {
	for _, forgotten := range []bool{false, true} {
		root := t.TempDir()
		book, path := opened(t, root), filepath.Join(root, "a", "f")
		wants, err := ledger.DirWants(filepath.Dir(path), 0o755)
		require.NoError(t, err)
		wants = append(wants, ledger.FileWant(path, 0o644, []byte("ours")))
		require.NoError(t, apply(t, book, wants...))
		require.NoError(t, os.WriteFile(path, []byte("edited"), 0o644))
		require.ErrorIs(t, undo(t, book), ledger.ErrChanged)
		if forgotten {
			require.NoError(t, book.Forget(t.Context(), wants[1].ID()))
			require.ErrorIs(t, undo(t, book), ledger.ErrChanged)
		}
		undone := undoes(t, book.Accepting())
		for _, u := range undone {
			require.True(t, u.Stays)
			require.Contains(t, u.Change, "leave ")
		}
		require.Contains(t, looksLike(t, path), "edited")
		require.NoDirExists(t, filepath.Join(root, "state"))
	}
}

// What something else on the node needs stays recorded, which is no failure, and goes once
// it is not needed any more.
func TestPLAN6_WhatIsNeededStays(t *testing.T) {
	values, needed := map[string]string{}, true
	k, wants := kept(values)
	k.Keeps = func(context.Context, string, ledger.StateAfter) (string, error) {
		if needed {
			return "a pod uses it", nil
		}
		return "", nil
	}
	root := t.TempDir()
	book := opened(t, root, k)
	require.NoError(t, apply(t, book, wants.List...))
	for _, accept := range []bool{false, true} {
		if accept {
			book.Accepting()
		}
		undone := undoes(t, book)
		require.Len(t, undone, 1)
		require.ErrorIs(t, undone[0].Err, ledger.ErrNeeded)
		require.ErrorContains(t, undone[0].Err, "a is still needed: a pod uses it")
		require.NotEmpty(t, values)
	}
	needed = false
	require.NoError(t, undo(t, book))
	require.Empty(t, values)
	require.NoDirExists(t, filepath.Join(root, "state"))
}

// A link that another program puts in the place of a directory or file is not followed, and
// not removed.
func TestSEC1_LinksAreNotFollowed(t *testing.T) {
	root := t.TempDir()
	book := opened(t, root)
	dir, file, victim := filepath.Join(root, "d"), filepath.Join(root, "f"), filepath.Join(root, "victim")
	require.NoError(t, os.Mkdir(victim, 0o755))
	wants, err := ledger.DirWants(dir, 0o755)
	require.NoError(t, err)
	require.NoError(t, apply(t, book, append(wants, ledger.FileWant(file, 0o644, []byte("ours")))...))
	for _, path := range []string{dir, file} {
		require.NoError(t, os.Remove(path))
		require.NoError(t, os.Symlink(victim, path))
	}
	require.ErrorIs(t, undo(t, book), ledger.ErrChanged)
	require.DirExists(t, victim)
	require.Contains(t, looksLike(t, dir), "-> "+victim)
	require.Contains(t, looksLike(t, file), "-> "+victim)
	undoes(t, book.Accepting())
}

// A link on the way that another user could have put there is refused.
func TestSEC1_LinksOfOthersOnTheWayAreRefused(t *testing.T) {
	testns.Root(t)
	root := t.TempDir()
	shared, victim := filepath.Join(root, "shared"), filepath.Join(root, "victim")
	require.NoError(t, errors.Join(os.Mkdir(shared, 0o755), os.Mkdir(victim, 0o755), os.Symlink(victim, filepath.Join(shared, "link"))))
	require.NoError(t, os.Chown(shared, 4242, 4242))
	book, want := opened(t, root), ledger.FileWant(filepath.Join(shared, "link", "f"), 0o644, []byte("x"))
	_, err := book.Check(t.Context(), "s", ledger.Wants{List: []ledger.Want{want}})
	require.ErrorContains(t, err, "a symbolic link that others may change")
	require.ErrorContains(t, apply(t, book, want), "a symbolic link that others may change")
	require.NoFileExists(t, filepath.Join(victim, "f"))
}

// What is in the way and could not come back is an error before anything is recorded.
func TestPLAN17_WhatIsInTheWayIsSaidBeforehand(t *testing.T) {
	root := t.TempDir()
	book, path := opened(t, root), filepath.Join(root, "f")
	require.NoError(t, unix.Mkfifo(path, 0o644))
	want := ledger.FileWant(path, 0o644, []byte("x"))
	look := checked(t, book, "s", ledger.Wants{List: []ledger.Want{want}})
	require.ErrorContains(t, look.Denied, "FIFO is in the way: move it away")
	require.ErrorContains(t, apply(t, book, want), "FIFO")
	require.Contains(t, looksLike(t, path), "p")
	require.NoDirExists(t, filepath.Join(root, "state"))
}

// No set-user-id bit comes from a ledger, and no path of the kernel's is ever recorded.
func TestSEC3_NoSetUserIDBitAndNoPathOfTheKernelComesFromALedger(t *testing.T) {
	root := t.TempDir()
	book, path := opened(t, root), filepath.Join(root, "f")
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o755))
	require.NoError(t, os.Chmod(path, 0o755|fs.ModeSetuid|fs.ModeSetgid))
	require.NoError(t, apply(t, book, ledger.FileWant(path, 0o755, []byte("ours"))))
	require.NoError(t, undo(t, book))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o755), info.Mode())
	for _, path := range []string{"/proc/x", "/sys/kernel/x", "/dev", "/", "relative"} {
		require.Error(t, apply(t, book, ledger.FileWant(path, 0o644, nil)), path)
	}
}

// A path that leads through a link is the same object as the one without.
func TestPLAN14_APathThroughALinkIsTheSameObject(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "real"), 0o755))
	require.NoError(t, os.Symlink("real", filepath.Join(root, "link")))
	book := opened(t, root)
	require.NoError(t, apply(t, book, ledger.FileWant(filepath.Join(root, "link", "f"), 0o644, []byte("1"))))
	require.NoError(t, apply(t, book, ledger.FileWant(filepath.Join(root, "real", "f"), 0o644, []byte("1"))))
	wants, err := ledger.DirWants(filepath.Join(root, "real", "f"), 0o755)
	require.ErrorIs(t, err, syscall.ENOTDIR)
	require.Empty(t, wants)
	dir := ledger.Want{Kind: ledger.Dir(), Object: filepath.Join(root, "link", "f"), To: ledger.State{Type: "dir"}}
	require.ErrorIs(t, apply(t, book, dir), ledger.ErrConflict)
	status := statusOf(t, book)
	require.Len(t, status.Records, 1)
	require.NoError(t, undo(t, book))
}

// An original shares its blocks with its copy where the file system can, and keeps its content
// when it is written to.
func TestPLAN6_AnOriginalIsClonedWhereTheFileSystemCan(t *testing.T) {
	testns.Enter(t, testns.Mount)
	dir := testns.TempDir(t)
	out, err := exec.Command("sh", "-euc", `cd "$0"; mkdir disk; truncate -s 300M image; mkfs.xfs -q image; mount -o loop image disk`, dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	disk := filepath.Join(dir, "disk")
	t.Cleanup(func() { require.NoError(t, unix.Unmount(disk, 0)) })
	used := func() uint64 {
		unix.Sync()
		var s unix.Statfs_t
		require.NoError(t, unix.Statfs(disk, &s))
		return (s.Blocks - s.Bfree) * uint64(s.Bsize)
	}
	const size = 64 << 20
	path, theirs, open := filepath.Join(disk, "plugin"), bytes.Repeat([]byte("theirs.\n"), size/8), filepath.Join(disk, "open")
	require.NoError(t, os.WriteFile(path, theirs, 0o755))
	require.NoError(t, os.Link(path, open))
	before := used()
	book := opened(t, disk)
	require.NoError(t, apply(t, book, ledger.FileWant(path, 0o755, []byte("ours"))))
	require.Less(t, used()-before, uint64(size/2), "no second copy")
	require.NoError(t, os.WriteFile(open, bytes.Repeat([]byte("changed\n"), size/8), 0o755))
	require.NoError(t, undo(t, book))
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(theirs, now))
}

// The attributes of what is mounted on a directory are not the directory's.
func TestPLAN6_AMountPointIsStillTheDirectory(t *testing.T) {
	testns.Enter(t, testns.Mount)
	root := testns.TempDir(t)
	book := opened(t, root)
	point := filepath.Join(root, "made", "point")
	wants, err := ledger.DirWants(point, 0o755)
	require.NoError(t, err)
	require.NoError(t, apply(t, book, wants...))

	require.NoError(t, unix.Mount("tmpfs", point, "tmpfs", 0, "mode=700"))
	look := checked(t, book, "step", ledger.Wants{List: wants})
	require.Empty(t, look.Changes)
	err = undo(t, book)
	require.ErrorContains(t, err, "something is mounted on it")
	require.DirExists(t, point)
	require.NoError(t, unix.Unmount(point, 0))
	require.NoError(t, undo(t, book))
	require.NoDirExists(t, filepath.Dir(point))
}
