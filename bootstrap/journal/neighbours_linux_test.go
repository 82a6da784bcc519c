// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/testns"
)

// fileNode is a node on which several agents want one file.
type fileNode struct {
	root  string
	files journal.Files
}

func newFileNode(t *testing.T, original string) fileNode {
	n := fileNode{t.TempDir(), journal.Files{Kind: "acme"}}
	write(t, n.path(), original, 0o644)
	return n
}

func (n fileNode) path() string  { return filepath.Join(n.root, "file") }
func (n fileNode) state() string { return filepath.Join(n.root, "state") }

func (n fileNode) open(t *testing.T, a tenant) (*journal.Journal, context.Context) {
	node := journal.Node{Dir: n.state(), Agent: a.name, NoOwner: true, Override: a.force, Handlers: []journal.Handler{n.files}}
	j, err := node.Open(t.Context(), nil)
	require.NoError(t, err)
	return j, step(t, j, "files")
}

func (n fileNode) apply(t *testing.T, a tenant) error {
	j, ctx := n.open(t, a)
	f := journal.File{Content: []byte(a.wants), Mode: 0o644}
	err := n.files.Write(ctx, j, n.path(), f)
	if err == nil {
		err = j.Wish(ctx, n.files.Wish(n.path(), f, true))
	}
	return errors.Join(err, j.Close())
}

func (n fileNode) uninstall(t *testing.T, a tenant) error {
	j, _ := n.open(t, a)
	_, err := j.RevertAll(t.Context())
	return errors.Join(err, j.Close())
}

func (n fileNode) requireContent(t *testing.T, want string) {
	t.Helper()
	raw, err := os.ReadFile(n.path())
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
	}
	require.Equal(t, want, string(raw))
}

// Two agents have overridden a third one's file. Whichever of them is uninstalled first, and
// whether they agree or not, the other one's content is there again.
func TestPLAN14_TwoHaveOverriddenAFile(t *testing.T) {
	original := strings.Repeat("original", 1<<10) // too large for the record
	for _, wants := range []string{"2", "3"} {
		for _, secondFirst := range []bool{true, false} {
			n := newFileNode(t, original)
			others := []tenant{{name: "second", wants: "2", force: true}, {name: "third", wants: wants, force: true}}
			require.NoError(t, n.apply(t, first))
			for _, a := range others {
				require.NoError(t, n.apply(t, a))
			}
			if !secondFirst {
				slices.Reverse(others)
			}
			require.NoError(t, n.uninstall(t, others[0]))
			n.requireContent(t, others[1].wants)
			require.NoError(t, n.uninstall(t, others[1]))
			n.requireContent(t, "1")
			require.NoError(t, n.uninstall(t, first))
			n.requireContent(t, original)
			require.NoDirExists(t, n.state())
		}
	}
}

// Two agents that want the same content with another owner or mode conflict: each would keep
// changing the other's file.
func TestPLAN14_AnotherOwnerOrModeIsAConflict(t *testing.T) {
	n := newFileNode(t, "original")
	require.NoError(t, n.apply(t, first))
	j, ctx := n.open(t, second)
	defer j.Close()
	for _, f := range []journal.File{{UID: os.Geteuid() + 1, Mode: 0o644}, {GID: os.Getegid() + 1, Mode: 0o644}, {Mode: 0o600}} {
		f.Content = []byte("1")
		_, err := j.CheckWishes(ctx, n.files.Wish(n.path(), f, false))
		require.ErrorIs(t, err, journal.ErrConflict)
		require.ErrorIs(t, n.files.Write(ctx, j, n.path(), f), journal.ErrConflict)
	}
	require.Empty(t, entries(t, j))
}

// An object in the place of another agent's journal neither stops this agent nor delays it.
func TestPLAN14_WhatIsNoJournalOfAnother(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"link":      func(path string) error { return os.Symlink("/dev/zero", path) },
		"huge": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40))
		},
		"later": func(path string) error { return os.WriteFile(path, []byte("{}\n"), 0o600) },
		"writable": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o666))
		},
	} {
		n := newFileNode(t, "original")
		require.NoError(t, os.Mkdir(n.state(), 0o700))
		require.NoError(t, put(filepath.Join(n.state(), "second.journal")), name)
		require.NoError(t, n.apply(t, first), name)
		n.requireContent(t, "1")
		require.NoError(t, n.uninstall(t, first), name)
		n.requireContent(t, "original")
		_, err := os.Lstat(filepath.Join(n.state(), "second.journal"))
		require.NoError(t, err, "%s: it is another agent's", name)
	}
}

// If no more files can be opened, the wishes of others are unknown, and nothing is done.
func TestPLAN14_WhatCannotBeReadNowIsNotTakenForNothing(t *testing.T) {
	s := newShared(t)
	require.NoError(t, s.apply(t, first, whole))
	j := s.open(t, tenant{name: "second"})
	defer j.Close()
	ctx := step(t, j, "values")
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	t.Cleanup(func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)) })
	free, err := unix.Dup(0)
	require.NoError(t, err)
	require.NoError(t, unix.Close(free))
	asked := false
	for more := range uint64(10) {
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(free) + more, Max: limit.Max}))
		_, err = j.CheckWishes(ctx, tenant{name: "second", wants: "2"}.claim(s))
		if !errors.Is(err, journal.ErrConflict) {
			require.ErrorIs(t, err, unix.EMFILE)
			asked = asked || strings.Contains(err.Error(), `read the wishes of agent "first": `)
		}
	}
	require.True(t, asked)
	require.ErrorIs(t, err, journal.ErrConflict)
}

// A process has opened its journal before another agent arrives. Content kept for that agent
// stays, and the process learns of its wish.
func TestPLAN14_OneThatCameLater(t *testing.T) {
	original := strings.Repeat("original", 1<<10) // too large for the record
	n, later := newFileNode(t, original), tenant{name: "second", wants: "2"}
	j, ctx := n.open(t, first)
	defer j.Close()
	for _, path := range []string{n.path() + ".1", n.path() + ".2"} {
		write(t, path, strings.Repeat(path, 1<<10), 0o644)
		require.NoError(t, n.files.Begin(ctx, j, path, journal.FileState(nil, 0o600)))
	}
	require.NoError(t, n.apply(t, later))
	kept, err := filepath.Glob(filepath.Join(n.state(), "blob.*"))
	require.NoError(t, err)
	require.NoError(t, j.Forget(ctx, entries(t, j)[0]))
	left, err := filepath.Glob(filepath.Join(n.state(), "blob.*"))
	require.NoError(t, err)
	require.Len(t, left, len(kept)-1, "only its own content is gone")
	require.NoError(t, j.Verify(ctx), "as a guard does before a change")
	require.ErrorIs(t, n.files.Write(ctx, j, n.path(), journal.File{Content: []byte("1")}), journal.ErrConflict)
	require.NoError(t, n.uninstall(t, later))
	n.requireContent(t, original)
}

// An object on one container's side is not the other container's, whatever its path; an object
// on the host belongs to both.
func TestPLAN14_EachContainerHasItsOwnObjects(t *testing.T) {
	s := newShared(t)
	write := func(agent, content string) {
		t.Run(agent, func(t *testing.T) {
			host, err := os.Open("/proc/thread-self/ns/mnt")
			require.NoError(t, err)
			defer host.Close()
			testns.Enter(t, testns.Mount)
			enter := func(ctx context.Context, _ []string, f func(context.Context) error) error {
				own, err := os.Open("/proc/thread-self/ns/mnt")
				require.NoError(t, err)
				defer own.Close()
				require.NoError(t, unix.Setns(int(host.Fd()), unix.CLONE_NEWNS))
				defer func() { require.NoError(t, unix.Setns(int(own.Fd()), unix.CLONE_NEWNS)) }()
				return f(ctx)
			}
			j, err := (&journal.Node{Dir: s.dir, Agent: agent, NoOwner: true, Handlers: []journal.Handler{s.v}}).Open(t.Context(), enter)
			require.NoError(t, err)
			defer j.Close()
			e := journal.Entry{Kind: "acme/value", Object: "/tmp/config", Before: value("0"), After: value(content)}
			require.NoError(t, j.Begin(step(t, j, "config"), e))
			e.Identity = "thing /tmp/host"
			e.Object, e.After = "/tmp/host", value("1")
			require.NoError(t, j.Begin(step(t, j, "config"), e))
			all := entries(t, j)
			require.Equal(t, "of agent "+agent+": acme/value /tmp/config", all[0].Identity)
			require.Equal(t, "thing /tmp/host", all[1].Identity, "as the caller says")
		})
	}
	write("first", "1")
	write("second", "2")
}

// elsewhere is a handler of values in one of the host's namespaces.
type elsewhere struct{ values }

func (elsewhere) Namespaces() []string { return []string{"net"} }

// A host that cannot be entered is an error, and nothing is undone here instead.
func TestSEC10_WhatCannotBeEnteredIsNotUndoneHere(t *testing.T) {
	errGone := errors.New("no such host")
	v := newValues()
	gone := false
	enter := func(ctx context.Context, _ []string, f func(context.Context) error) error {
		if gone {
			return errGone
		}
		return f(ctx)
	}
	n := &journal.Node{Dir: filepath.Join(t.TempDir(), "state"), Agent: "agent", NoOwner: true, Handlers: []journal.Handler{elsewhere{v}}}
	j, err := n.Open(t.Context(), enter)
	require.NoError(t, err)
	defer j.Close()
	v.set(t, step(t, j, "one"), j, "a", "1")
	gone = true
	_, err = j.RevertAll(t.Context())
	require.ErrorIs(t, err, errGone)
	require.Equal(t, "1", v.now["a"])
	require.Equal(t, []string{"a"}, objects(t, j), "it stays recorded")
	_, err = n.Open(t.Context(), enter)
	require.ErrorIs(t, err, errGone)
}
