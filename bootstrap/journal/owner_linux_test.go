// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/testns"
)

// TestPLAN11_Overlaps plays events of several processes on one node, in order.
// "a1 apply" is the process a1 of owner a applying; an empty outcome is success.
func TestPLAN11_Overlaps(t *testing.T) {
	const notOwner, revoked = "is somebody else's", "is no longer this one's"
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
		"nobody in particular has the node": {
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
					o := journal.Options{Owner: strings.ToLower(owner), TakeOver: owner == "A", AnyOwner: owner == "any", Handlers: []journal.Handler{v}}
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
					require.Equal(t, "journal.revoked", code.Of(err))
				} else {
					require.ErrorIs(t, err, journal.ErrNotOwner)
					require.Equal(t, "journal.not-owner", code.Of(err))
				}
				require.Equal(t, before, entries(t, j), "who is refused changes nothing")
				require.Equal(t, made, exists(t, dir), "nor makes the directory anew")
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

// A directory that is not the journal's own stays, and nothing is left in it.
func TestPLAN11_WhoWasUninstalledLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, journal.Options{Owner: "a"})
	_, leave, err := j.Enter(t.Context(), "apply")
	require.NoError(t, err)
	require.NoError(t, leave())
	_, err = open(t, dir, journal.Options{AnyOwner: true}).RevertAll(t.Context())
	require.NoError(t, err)
	_, _, err = j.Enter(t.Context(), "apply")
	require.ErrorIs(t, err, journal.ErrRevoked)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
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
		_, leave, err := open(t, dir, journal.Options{Owner: who}).Enter(t.Context(), "apply")
		require.NoError(t, err)
		require.NoError(t, leave())
	}
	name, generation, err := open(t, dir, journal.Options{}).Owner()
	require.NoError(t, err)
	require.Equal(t, "pod-b", name)
	require.Equal(t, 2, generation)
	_, _, err = open(t, dir, journal.Options{Owner: "pod-a"}).Enter(t.Context(), "apply")
	require.ErrorContains(t, err, `the node is somebody else's: "pod-b" (generation 2, since 2`)
	require.ErrorContains(t, err, `after "pod-a"`)
	_, err = open(t, dir, journal.Options{}).RevertAll(t.Context())
	require.ErrorContains(t, err, "this is nobody in particular")
	_, err = open(t, dir, journal.Options{AnyOwner: true}).RevertAll(t.Context())
	require.NoError(t, err)
}

func TestPLAN11_ManyOwners(t *testing.T) {
	dir := t.TempDir()
	for i := range 300 {
		_, leave, err := open(t, dir, journal.Options{Owner: "pod-" + string(rune('a'+i%26)) + time.Duration(i).String()}).Enter(t.Context(), "apply")
		require.NoError(t, err)
		require.NoError(t, leave())
	}
	_, generation, err := open(t, dir, journal.Options{}).Owner()
	require.NoError(t, err)
	require.Equal(t, 300, generation)
}

func TestPLAN11_ClaimsSaysWhetherAnApplyWould(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	claims := func(owner string) bool {
		claims, err := open(t, dir, journal.Options{Owner: owner}).Claims()
		require.NoError(t, err)
		return claims
	}
	require.True(t, claims("a"))
	require.False(t, claims(""), "nobody in particular claims nothing")
	_, leave, err := open(t, dir, journal.Options{Owner: "a"}).Enter(t.Context(), "apply")
	require.NoError(t, err)
	require.NoError(t, leave())
	require.False(t, claims("a"))
	require.True(t, claims("b"))
	nothing, err := (*journal.Journal)(nil).Claims()
	require.NoError(t, err)
	require.False(t, nothing)
}

func TestPLAN11_AnApplyWaitsWhileAnUninstallRuns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	first := open(t, dir, journal.Options{Owner: "a"})
	_, leave, err := first.Enter(t.Context(), "apply")
	require.NoError(t, err)
	require.NoError(t, leave())
	_, uninstalled, err := first.Enter(t.Context(), "revert")
	require.NoError(t, err)

	second := open(t, dir, journal.Options{Owner: "b"})
	entered := make(chan error, 1)
	go func() {
		_, leave, err := second.Enter(t.Context(), "apply")
		if err == nil {
			err = leave()
		}
		entered <- err
	}()
	select {
	case err := <-entered:
		t.Fatal("it did not wait: ", err)
	case <-time.After(150 * time.Millisecond):
	}
	require.NoError(t, uninstalled())
	require.NoError(t, <-entered)
	name, generation, err := second.Owner()
	require.NoError(t, err)
	require.Equal(t, "b", name)
	require.Equal(t, 1, generation, "the directory was removed, and made again")
}

func TestPLAN11_AClaimWhileAnUninstallEndsIsKept(t *testing.T) {
	for i := range 100 {
		dir := filepath.Join(t.TempDir(), "state")
		first, second := open(t, dir, journal.Options{Owner: "a"}), open(t, dir, journal.Options{Owner: "b"})
		_, leave, err := first.Enter(t.Context(), "apply")
		require.NoError(t, err)
		require.NoError(t, leave())
		entered := make(chan error, 1)
		go func() {
			time.Sleep(time.Duration(i) * 20 * time.Microsecond)
			_, leave, err := second.Enter(t.Context(), "apply")
			if err == nil {
				err = leave()
			}
			entered <- err
		}()
		_, err = first.RevertAll(t.Context())
		if err != nil {
			require.ErrorIs(t, err, journal.ErrNotOwner, "the second one was faster")
		}
		require.NoError(t, <-entered)
		name, _, err := second.Owner()
		require.NoError(t, err)
		require.Equal(t, "b", name)
	}
}

// An uninstall removes the lock while another process that has opened it has not yet
// looked at it.
func TestPLAN11_ALockThatIsGoneIsNoUntrustedOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	require.NoError(t, err)
	defer lock.Close()
	require.NoError(t, journal.Trusted(path, lock.Stat))
	require.NoError(t, os.Link(path, path+"2"))
	require.ErrorIs(t, journal.Trusted(path, lock.Stat), journal.ErrUntrusted)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Remove(path+"2"))
	require.NoError(t, journal.Trusted(path, lock.Stat))
}

func TestPLAN11_OfTwoWhoClaimAtOnceOneHasTheNode(t *testing.T) {
	for range 20 {
		dir := filepath.Join(t.TempDir(), "state")
		one, two := open(t, dir, journal.Options{Owner: "one"}), open(t, dir, journal.Options{Owner: "two"})
		claimed := make(chan error, 2)
		for _, j := range []*journal.Journal{one, two} {
			go func() {
				_, leave, err := j.Enter(t.Context(), "apply")
				if err == nil {
					err = leave()
				}
				claimed <- err
			}()
		}
		require.NoError(t, <-claimed)
		require.NoError(t, <-claimed, "the later one takes over")
		verified := 0
		for _, j := range []*journal.Journal{one, two} {
			if _, leave, err := j.Enter(t.Context(), journal.Verify); err == nil {
				verified++
				require.NoError(t, leave())
			}
		}
		require.Equal(t, 1, verified)
	}
}

// A lock that others can open, or have made, is not waited for.
func TestSEC2_SEC7_ALockOfOthersIsRefused(t *testing.T) {
	testns.Root(t)
	for want, spoil := range map[string]func(lock string) error{
		"mode 0644, so others could hold it for ever (chmod 600 it)": func(lock string) error { return os.Chmod(lock, 0o644) },
		"mode 0622":     func(lock string) error { return os.Chmod(lock, 0o622) },
		"uid 1000":      func(lock string) error { return os.Chown(lock, 1000, 0) },
		"several names": func(lock string) error { return os.Link(lock, lock+".too") },
	} {
		dir := filepath.Join(t.TempDir(), "state")
		j := open(t, dir, journal.Options{Owner: "a"})
		_, leave, err := j.Enter(t.Context(), "apply")
		require.NoError(t, err)
		require.NoError(t, leave())
		lock := filepath.Join(dir, "lock")
		require.NoError(t, spoil(lock))
		theirs, err := os.Open(lock)
		require.NoError(t, err)
		defer theirs.Close()
		require.NoError(t, unix.Flock(int(theirs.Fd()), unix.LOCK_EX))
		for _, op := range []string{"apply", journal.Verify, "revert"} {
			_, _, err := j.Enter(t.Context(), op)
			require.ErrorContains(t, err, lock, op)
			require.ErrorContains(t, err, want, op)
		}
	}
}

func TestSEC7_NobodyElseCanHoldTheJournal(t *testing.T) {
	testns.Root(t)
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	f, err := os.Open(dir) // as anybody may
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	j := open(t, dir, journal.Options{Owner: "a"})
	_, leave, err := j.Enter(t.Context(), "apply")
	require.NoError(t, err)
	info, err := os.Lstat(filepath.Join(dir, "lock"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	require.NoError(t, leave())
}
