// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/code"
)

// Sequences that broke a sketch of the engine, or an earlier state of it, each with the
// states that its end shall have.
func TestPLAN6_PLAN14_KnownSequences(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		end    map[string]string // objects that are not as on a new node
	}{
		"an earlier state of ours comes back from a backup": {`
			apply 0 s "f:/h"=1
			apply 0 s "f:/h"=2
			other "f:/h"=1
			apply 0 s "f:/h"=2`, nil},
		"what a secret was about to replace stays, although another agent wants nothing there": {`
			override 0 1
			apply 1 t "f:/h"=
			other "f:/h"=6
			apply 0 t "f:/conf"=1 "f:/h"=1,secret kill=4`, map[string]string{"f:/h": "6"}},
		"half a file of another program is no original": {`
			other "f:/h"=7
			apply 0 s "f:/h"=1
			torn "f:/h"=6
			apply 0 s "f:/h"=1`, map[string]string{"f:/h": "7"}},
		"an upgrade by another program is not undone": {`
			other "f:/h"=6
			apply 0 s "f:/h"=1
			other "f:/h"=7
			apply 0 s "f:/h"=1`, map[string]string{"f:/h": "7"}},
		"the program of an overridden agent writes what its agent wanted": {`
			override 1
			apply 0 s "f:/h"=1
			apply 1 s "f:/h"=2
			other "f:/h"=1
			apply 1 s "f:/h"=2
			undo 0`, nil},
		"a refreshed credential is written anew": {`
			apply 0 s "f:/h"=1,rewritten
			other "f:/h"=7
			apply 0 s "f:/h"=2,rewritten`, nil},
		"a reboot, with another value by default": {`
			apply 0 s "v:z"=1
			apply 1 s "f:/conf"=1
			reboot
			other "v:z"=7
			apply 1 s "f:/conf"=1`, map[string]string{"v:z": "7"}},
		"the kernel stores a value otherwise, and the run is killed": {`
			apply 0 s "v:c\xff\\"=1x kill=4
			apply 0 s "v:c\xff\\"=1x`, nil},
		"a value that is changed along, and another program's write of it": {`
			apply 0 s "v:a"=1
			other "v:b[0]"=5`, map[string]string{"v:b[0]": "5"}},
		"a write that changes nothing but what comes along": {`
			apply 0 t "v:a"=1 "v:b[0]"=2
			apply 0 t "v:a"=1x`, nil},
		"a write that was killed, and whose file another program has removed": {`
			apply 1 s "f:/conf"=1 kill=7
			other "f:/conf"=`, nil},
		"a run is killed before it writes, and another program writes what it would have changed along": {`
			apply 1 s "f:/conf"=1 kill=3
			other "v:z"=7
			apply 1 s "f:/conf"=1`, map[string]string{"v:z": "7"}},
		"an agent overrides the one that has overridden it, and is undone": {`
			override 0 1
			apply 0 s "v:z"=1
			apply 1 s "v:z"=2
			apply 0 s "v:z"=1
			undo 0`, nil},
		"a loose want hides none that is not": {`
			apply 0 s "v:z"=1
			apply 1 s "v:z"=2,loose
			apply 2 s "v:z"=3`, nil},
		"a directory that is recorded later than what is in it": {`
			other "f:/d/f"=7
			apply 0 s "f:/d/f"=1
			other "d:/d"=
			apply 0 s "d:/d"=dir
			apply 0 s "f:/d/f"=1`, nil},
		"what a loose want accepts stays another program's": {`
			apply 1 t "v:z"=3,loose
			other "v:z"=7
			apply 1 s "v:z"=1,loose
			other "v:z"=6`, map[string]string{"v:z": "6"}},
		"a directory of one agent, and a file of another in it": {`
			apply 0 s "d:/d"=dir
			apply 1 s "f:/d/f"=1
			undo 0`, nil},
		"a killed run wrote over an upgrade, and a backup of ours comes back before that is settled": {`
			apply 0 t "f:/h"=1
			other "f:/h"=7
			apply 0 t "f:/h"=2 kill=4
			other "f:/h"=1`, map[string]string{"f:/h": "7"}},
		"the same, of what is changed along": {`
			apply 0 t "f:/conf"=L1
			other "f:/conf"=7
			apply 0 s "f:/conf"=2 kill=4
			other "f:/conf"=L1`, map[string]string{"f:/conf": "7", "v:z": "7"}},
		"an object is forgotten whose undoing was killed when it had changed another one along": {`
			other "v:b[0]"=7
			apply 0 s "v:a"=3 "v:b[0]"=2
			undo 0 s kill=4
			forget 0 "v:a"`, map[string]string{"v:b[0]": "7"}},
		"an agent is released that was killed when it had changed another's object along": {`
			override 2
			apply 0 t "v:b[0]"=2
			apply 2 s "v:a"=3 kill=4
			release 2`, map[string]string{"v:a": "3"}},
		"a write had no effect, and another program is not done at once after it": {`
			torn "v:z"=1
			apply 1 t "v:z"=1x
			torn "v:z"=6
			apply 1 s "v:z"=2x`, map[string]string{"v:z": "1"}},
		"an agent is undone, and what another one wants instead has never been possible": {`
			other "m:/m"=theirs#102
			apply 1 s "m:/m"=ours kill=2
			apply 0 t "m:/m"=ours kill=4
			undo 0`, map[string]string{"m:/m": "theirs#102"}},
		"a value follows the one that changes it along, and the run is killed": {`
			apply 1 s "v:a"=2x "v:b[0]"=3
			apply 0 s "v:a"=2,loose
			undo 1 s kill=2`, nil},
		"the same, after its record was written": {`
			apply 1 s "v:a"=2x "v:b[0]"=3
			apply 0 s "v:a"=2,loose
			undo 1 s kill=4`, nil},
		"another program changes a value that changes one along, and later writes ours again": {`
			apply 0 t "v:a"=2
			other "v:a"=6
			undo 0 t
			older "v:a"=5`, nil},
		"another program writes the same as an agent's write then changes along": {`
			apply 0 s "v:z"=2
			reboot
			apply 0 s "f:/conf"=L1
			older "v:z"=3
			apply 0 s "f:/conf"=2`, map[string]string{"v:z": "2"}},
		"another program writes the same again once a killed run has written over it": {`
			apply 0 t "f:/d/f"=
			other "f:/d/f"=5
			apply 0 t "f:/d/f"=L2 kill=4
			torn "f:/d/f"=5
			apply 0 t "f:/d/f"=1`, map[string]string{"f:/d/f": "5", "d:/d": "dir"}},
		"two runs were killed before they wrote, and one of their agents is undone": {`
			apply 1 s "v:a"=3 kill=2
			apply 0 s "v:a"=3 kill=5
			undo 0`, nil},
		"another program makes a directory that an agent wanted, and a file in it that another agent removes": {`
			apply 0 s "d:/d/e"=dir kill=2
			apply 0 t
			other "f:/d/e/g"=6
			apply 1 t "f:/d/e/g"=
			undo 0`, map[string]string{"f:/d/e/g": "6", "d:/d": "dir", "d:/d/e": "dir"}},
		"a loose want prevails over none that is not, once a third agent is undone": {`
			override 2
			apply 0 s "v:z"=1
			apply 1 s "v:z"=2,loose
			apply 2 s "v:z"=3
			undo 2
			release 0
			release 1`, map[string]string{"v:z": "1"}},
		"what an agent wants absent is so again, and the run is killed": {`
			override 0
			other "f:/h"=7
			apply 1 s "f:/h"=
			apply 0 s "f:/h"=2
			undo 0 kill=5`, map[string]string{"f:/h": "7"}},
		"what no agent could mount over is not mounted again": {`
			apply 0 s "m:/m"=ours kill=4
			other "m:/m"=theirs#100
			apply 1 s "m:/m"=ours
			other "m:/m"=`, nil},
		"absent is a want too, of what another agent's object needs": {`
			override 0 1
			apply 0 t "f:/h"=
			apply 2 t "v:z"=3,needs
			apply 1 t "f:/h"=2
			undo 1`, nil},
		"absent is a want too": {`
			other "f:/h"=6
			apply 0 s "f:/h"=
			other "f:/h"=7
			apply 0 s "f:/h"=`, map[string]string{"f:/h": "7"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, err := run(parseScript(t, tc.script))
				require.NoError(t, err, strings.Join(p.trace, "\n"))
				for object, was := range newNode("").states() {
					if end, differs := tc.end[object]; differs {
						was = end
					}
					require.Equal(t, was, p.node.state(object), "%s\n%s", object, strings.Join(p.trace, "\n"))
				}
			})
		})
	}
}

// What the kernel reads back otherwise is an error, and what was read is as it was left.
func TestPLAN6_AValueIsRecordedAsReadBackAfterTheWrite(t *testing.T) {
	p := newPlay("")
	err := p.do(op{verb: "apply", step: "s", wants: []want{{object: "v:a", to: "1x"}}})
	require.NoError(t, err, "no promise is broken")
	require.Contains(t, p.trace[0], "written, but it is still different")
	status, err := p.look()
	require.NoError(t, err)
	require.Equal(t, "1", status.Records[0].Left.Value)
	require.Equal(t, "0", status.Records[0].Original.Value)
}

// A different want of another agent is named before anything is changed.
func TestPLAN14_AConflictNamesTheOtherAgent(t *testing.T) {
	p := newPlay("")
	k := p.node.kinds()["v"]
	wants := func(object, value string) ledger.Wants {
		return ledger.Wants{List: []ledger.Want{{Kind: k, Object: object, To: ledger.State{Type: "value", Value: value}}}}
	}
	applied(t, p.book(0), "s", wants("b[0]", "1"))
	for _, w := range []ledger.Wants{wants("b[0]", "2"), wants("a", "2")} { // a changes it along
		_, err := p.book(1).Check(t.Context(), "s", w)
		require.ErrorIs(t, err, ledger.ErrConflict)
		require.ErrorContains(t, err, `agent "agent0"`)
		_, err = p.book(1).Apply(t.Context(), "s", w)
		require.ErrorIs(t, err, ledger.ErrConflict)
	}
	require.Equal(t, "1", p.node.state("v:b[0]"))
	require.Equal(t, "0", p.node.state("v:a"))
}

// What a step listed within a place, and no longer lists, goes; an empty list removes
// nothing.
func TestPLAN12_ACompleteListDropsWhatItNoLongerLists(t *testing.T) {
	p := newPlay("")
	k := p.node.kinds()["f"]
	wants := func(names ...string) (w ledger.Wants) {
		w.Complete = func(*ledger.Kind, string) bool { return true }
		for _, name := range names {
			w.List = append(w.List, ledger.Want{Kind: k, Object: name, To: ledger.State{Type: "file"}.WithContent([]byte("1"))})
		}
		return w
	}
	apply := func(w ledger.Wants) ledger.Outcome {
		done := applied(t, p.book(0), "s", w)
		return done
	}
	apply(wants("/h", "/i"))
	require.Empty(t, apply(wants()).Undone)
	look := checked(t, p.book(0), "s", wants("/h"))
	require.Equal(t, []string{"remove file-in-memory /i"}, look.Changes)
	require.Len(t, apply(wants("/h")).Undone, 1)
	require.Equal(t, "", p.node.state("f:/i"))
	require.Equal(t, "1", p.node.state("f:/h"))

	apply(wants("/h", "/i"))
	p.node.set("f:/i", "6")
	require.ErrorIs(t, apply(wants("/h")).Undone[0].Err, ledger.ErrChanged, "it is theirs, and no failure of the step")
	look = checked(t, p.book(0), "s", wants("/h"))
	require.Empty(t, look.Changes)
	require.False(t, look.Claims, "to apply again changes nothing")
}

// An agent that has gone is released without its kinds, and what it alone wanted is named.
func TestPLAN14_AVanishedAgentIsReleased(t *testing.T) {
	p := newPlay("")
	applied(t, p.book(0), "s", ledger.Wants{List: p.wants(op{wants: []want{{object: "v:z", to: "1"}, {object: "f:/h", to: "1"}}})})
	applied(t, p.book(1), "s", ledger.Wants{List: p.wants(op{wants: []want{{object: "v:z", to: "1"}}})})
	stranger := (&ledger.Ledger{Agent: "stranger"}).OpenIn(p.memory, "boot0")
	_, err := (&ledger.Ledger{Agent: "agent0"}).OpenIn(p.memory, "boot0").Undo(t.Context(), nil)
	require.Equal(t, code.LedgerUnknownKind, code.Of(err))
	left, err := stranger.Release(t.Context(), "agent0")
	require.NoError(t, err)
	require.Equal(t, []string{"/h"}, left)
	undoes(t, p.book(1))
	require.Equal(t, "0", p.node.state("v:z"))
	require.Nil(t, p.memory.Content)
}

// What is found exactly as wanted, and adopted when a step first claims, goes with its
// agent.
func TestPLAN15_AdoptedOnlyAtTheFirstClaim(t *testing.T) {
	for _, first := range []bool{true, false} {
		p := newPlay("")
		require.NoError(t, p.do(op{verb: "torn", object: "f:/h", to: "1"}))
		if !first {
			require.NoError(t, p.do(op{verb: "apply", step: "s", wants: []want{{object: "v:z", to: "1"}}}))
		}
		done := applied(t, p.book(0), "s", ledger.Wants{List: p.wants(op{wants: []want{{object: "f:/h", to: "1", flags: []string{"adopt"}}}})})
		status, err := p.book(0).Status(t.Context())
		require.NoError(t, err)
		require.Equal(t, first, strings.Contains(status.Records[len(status.Records)-1].String(), "/s (adopted)"))
		undoes(t, p.book(0))
		if first {
			require.Equal(t, []string{"/h"}, done.Adopted)
			require.Equal(t, "", p.node.state("f:/h"))
			continue
		}
		require.Empty(t, done.Adopted)
		require.Equal(t, "1", p.node.state("f:/h"))
	}
}

// Checks beside applies need no lock, and give no false answer: each want is either still
// to be made, or not.
func TestPLAN2_ChecksBesideAppliesGiveNoFalseAnswer(t *testing.T) {
	dir := t.TempDir() + "/state"
	value := make(chan string, 1)
	value <- "0"
	get := func() string { v := <-value; value <- v; return v }
	k := &ledger.Kind{
		Name: "value", Rounds: true,
		Read: func(context.Context, string) (ledger.State, error) {
			return ledger.State{Type: "value", Value: get()}, nil
		},
		Write: func(_ context.Context, _ string, to ledger.State) error { <-value; value <- to.Value; return nil },
	}
	wants := ledger.Wants{List: []ledger.Want{{Kind: k, Object: "a", To: ledger.State{Type: "value", Value: "1"}}}}
	open := func() *ledger.Book {
		book, err := (&ledger.Ledger{Dir: dir, Agent: "a", Kinds: []*ledger.Kind{k}, NoOwner: true}).Open(t.Context())
		require.NoError(t, err)
		return book
	}
	ended := make(chan error, 1)
	stop := make(chan struct{})
	go func() {
		book := open()
		defer book.Close()
		for {
			_, err := book.Apply(context.Background(), "s", wants)
			if err == nil {
				_, err = book.Undo(context.Background(), nil)
			}
			select {
			case <-stop:
				ended <- err
				return
			default:
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	book := open()
	defer book.Close()
	for range 10_000 {
		look := checked(t, book, "s", wants)
		require.Subset(t, []string{"write value a"}, look.Changes)
		require.Empty(t, look.Advice)
	}
	close(stop)
	require.NoError(t, <-ended)
}
