// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/testns"
)

// TestPLAN11_Overlaps plays events of several processes on one node, in order.
// "a1 apply" is the process a1 of owner a applying; an empty outcome is success.
func TestPLAN11_Overlaps(t *testing.T) {
	const notOwner, revoked = "has another owner", "no longer belongs to this owner"
	for name, events := range map[string][][2]string{
		"a rolling update with surge": {
			{"a1 apply"}, {"a1 apply"}, {"b1 apply"},
			{"a1 apply", revoked}, {"a1 verify", revoked}, {"a2 verify", notOwner},
			{"a1 revert", notOwner}, {"a2 check-revert", notOwner}, {"b1 apply"}, {"b1 revert"},
		},
		"the older pod's container restarts during the update": {
			{"a1 apply"}, {"b1 apply"}, {"a2 apply", notOwner}, {"a2 revert", notOwner}, {"b1 verify"}, {"b2 apply"}, {"b1 apply"},
		},
		"the newer pod's container restarts": {
			{"a1 apply"}, {"b1 apply"}, {"b2 apply"}, {"b1 verify"}, {"a1 verify", revoked}, {"b2 revert"},
		},
		"an administrator uninstalls in the middle": {
			{"a1 apply"}, {"nobody1 revert", notOwner}, {"any1 revert"}, {"a1 apply", revoked}, {"a1 verify", revoked}, {"a2 apply"}, {"a2 revert"},
		},
		"an administrator uninstalls in the middle of an update": {
			{"a1 apply"}, {"b1 apply"}, {"any1 revert"}, {"a1 apply", revoked}, {"b1 apply", revoked}, {"b2 apply"}, {"b2 apply"},
		},
		"an administrator applies beside an agent": {
			{"a1 apply"}, {"nobody1 apply"}, {"a1 apply"}, {"nobody1 apply"}, {"b1 apply"}, {"nobody1 apply", revoked}, {"nobody2 apply"}, {"b1 verify"},
		},
		"the node is uninstalled and claimed by another": {
			{"a1 apply"}, {"any1 revert"}, {"b1 apply"}, {"a1 apply", revoked}, {"a1 verify", revoked}, {"b1 apply"},
		},
		"the node has no named owner": {
			{"nobody1 apply"}, {"nobody1 apply"}, {"nobody2 apply"}, {"nobody2 revert"}, {"nobody1 apply", revoked}, {"nobody3 apply"},
		},
		"an owner takes over from nobody": {
			{"nobody1 apply"}, {"a1 apply"}, {"nobody1 apply", revoked}, {"nobody2 revert", notOwner}, {"a1 revert"},
		},
		"a superseded owner is told to take over": {
			{"a1 apply"}, {"b1 apply"}, {"a2 apply", notOwner}, {"A1 apply"}, {"b1 verify", revoked}, {"b2 apply", notOwner}, {"a3 apply"}, {"a3 revert"},
		},
		"a guard starts before its owner has applied": {
			{"a1 verify"}, {"a2 apply"}, {"a1 verify"}, {"a3 verify"}, {"b1 apply"}, {"a1 verify", revoked},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, v := filepath.Join(t.TempDir(), "state"), newValues()
			processes := map[string]*journal.Journal{}
			for i, event := range events {
				process, op, _ := strings.Cut(event[0], " ")
				j := processes[process]
				if j == nil {
					owner := strings.TrimRight(process, "123")
					o := journal.Node{Owner: strings.ToLower(owner), TakeOver: owner == "A", AnyOwner: owner == "any", Handlers: []journal.Handler{v}}
					if owner == "nobody" || owner == "any" {
						o.Owner = ""
					}
					j = open(t, dir, o)
					processes[process] = j
				}
				before, made := entries(t, j), exists(t, dir)
				err := run(t, j, v, op)
				if event[1] == "" {
					require.NoError(t, err, "event %d: %s", i, event[0])
					continue
				}
				require.ErrorContains(t, err, event[1], "event %d: %s", i, event[0])
				if event[1] == revoked {
					require.ErrorIs(t, err, journal.ErrRevoked)
					require.Equal(t, "ledger.revoked", code.Of(err))
				} else {
					require.ErrorIs(t, err, journal.ErrNotOwner)
					require.Equal(t, "ledger.not-owner", code.Of(err))
				}
				require.Equal(t, before, entries(t, j), "a refused owner changes nothing")
				require.Equal(t, made, exists(t, dir), "nor remakes the directory")
			}
		})
	}
}

func exists(t *testing.T, path string) bool {
	_, err := os.Lstat(path)
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
	}
	return err == nil
}

func run(t *testing.T, j *journal.Journal, v values, op string) error {
	_, leave, err := j.Enter(t.Context(), op)
	if err != nil {
		return err
	}
	switch op {
	case "apply":
		v.set(t, step(t, j, "one"), j, "a", "1")
	case "revert":
		require.NoError(t, j.Revert(step(t, j, "one")))
	}
	if err := leave(); err != nil {
		return err
	}
	if op == "revert" {
		require.NoDirExists(t, j.Dir())
	}
	return nil
}

func TestPLAN11_TheErrorNamesTheOwner(t *testing.T) {
	dir := t.TempDir()
	for _, who := range []string{"pod-a", "pod-b"} {
		_, leave, err := open(t, dir, journal.Node{Owner: who}).Enter(t.Context(), "apply")
		require.NoError(t, err)
		require.NoError(t, leave())
	}
	name, generation, err := open(t, dir, journal.Node{}).Owner()
	require.NoError(t, err)
	require.Equal(t, "pod-b", name)
	require.Equal(t, 2, generation)
	_, _, err = open(t, dir, journal.Node{Owner: "pod-a"}).Enter(t.Context(), "apply")
	require.ErrorContains(t, err, `the node has another owner: "pod-b" (generation 2, since 2`)
	require.ErrorContains(t, err, `after "pod-a"`)
	_, err = open(t, dir, journal.Node{}).RevertAll(t.Context())
	require.ErrorContains(t, err, "no owner is configured")
	_, err = open(t, dir, journal.Node{AnyOwner: true}).RevertAll(t.Context())
	require.NoError(t, err)
}

// Any user who may open the directory can lock it, and blocks no process by that.
func TestSEC7_NoOtherUserCanHoldTheJournal(t *testing.T) {
	testns.Root(t)
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	f, err := os.Open(dir) // as any user may open it
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	j := open(t, dir, journal.Node{Owner: "a"})
	_, leave, err := j.Enter(t.Context(), "apply")
	require.NoError(t, err)
	require.NoError(t, leave())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "the journal, and no lock of its own")
	require.Equal(t, "agent.journal", left[0].Name())
}

// Two processes that change a node without its lock may get errors, but every record
// acknowledged to either exists, and the journal stays readable.
func TestPLAN2_WritersWithoutTheLockDoNotTearTheJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	first := open(t, dir, journal.Node{})
	require.NoError(t, first.Begin(step(t, first, "s"), journal.Entry{Kind: "k", Object: "first"}))
	var acknowledged [4][]string
	var all sync.WaitGroup
	for w := range acknowledged {
		j := open(t, dir, journal.Node{}) // its own open file, as in another process
		ctx := step(t, j, "s")
		all.Go(func() {
			for n := range 100 {
				object := fmt.Sprint(w, "-", n)
				if j.Begin(ctx, journal.Entry{Kind: "k", Object: object}) == nil {
					acknowledged[w] = append(acknowledged[w], object)
				}
			}
		})
	}
	all.Wait()
	there := objects(t, open(t, dir, journal.Node{}))
	for _, objects := range acknowledged {
		require.Subset(t, there, objects)
	}
	require.Len(t, there, 1+len(slices.Concat(acknowledged[:]...)))
}
