// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// shelf holds files in memory that are staged beside their place.
type shelf struct {
	t      *testing.T
	files  map[string]ledger.State
	missed string // the object whose directory does not exist yet
	bad    string // the object that cannot be staged
	busy   string // the object that cannot be committed
}

var errBad = errors.New("it does not speak that version")

func newShelf(t *testing.T) *shelf { return &shelf{t: t, files: map[string]ledger.State{}} }

func (s *shelf) kind() *ledger.Kind {
	write := func(_ context.Context, o string, to ledger.State) error {
		if s.files[o] = to; to.IsZero() {
			delete(s.files, o)
		}
		s.missed = strings.TrimPrefix(s.missed, o)
		return nil
	}
	return &ledger.Kind{
		Name: "shelf", Write: write,
		Read: func(_ context.Context, o string) (ledger.State, error) { return s.files[o], nil },
		Stage: func(ctx context.Context, o string, to ledger.State) (*ledger.Staged, error) {
			switch {
			case o == s.bad && s.missed == "":
				return nil, errBad
			case o != s.missed && s.missed != "":
				return nil, fs.ErrNotExist
			}
			return &ledger.Staged{State: to, Discard: func() {}, Commit: func(ctx context.Context) error {
				if o == s.busy {
					return errBad
				}
				return write(ctx, o, to)
			}}, nil
		},
	}
}

// want is of an object whose content is staged.
func (s *shelf) want(object, content string) ledger.Want {
	to := ledger.State{Type: "file"}.WithContent([]byte(content))
	to.Open = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }
	return ledger.Want{Kind: s.kind(), Object: object, To: to}
}

func (s *shelf) put(object, content string) {
	s.files[object] = ledger.State{Type: "file", Changed: time.Now().Add(-time.Hour)}.WithContent([]byte(content))
}

func (s *shelf) content(object string) string { return string(s.files[object].Content) }

// What is wanted at once is written whole or not at all: if one object cannot be staged, none is
// written, and what an earlier pass made for them goes again.
func TestPLAN17_WhatIsWantedAtOnceIsWrittenWholeOrNotAtAll(t *testing.T) {
	for _, missed := range []string{"", "dir"} {
		s := newShelf(t)
		s.missed, s.bad = missed, "b"
		wants := ledger.Wants{AtOnce: true, List: []ledger.Want{s.want("dir", ""), s.want("a", "1"), s.want("b", "1")}}
		for i := range wants.List[1:] {
			wants.List[i+1].Needs = []string{wants.List[0].ID()}
		}
		book := openMemory(&ledger.Memory{}, "a", "boot", s.kind())
		done, err := book.Apply(t.Context(), "step", wants)
		require.ErrorIs(t, err, errBad)
		require.Empty(t, done.Changes)
		require.Empty(t, s.files)
		status := statusOf(t, book)
		require.Empty(t, status.Records)

		s.missed, s.bad, s.busy = missed, "", "a"
		_, err = book.Apply(t.Context(), "step", wants)
		require.ErrorIs(t, err, errBad)
		require.NotContains(t, s.files, "b", "nothing is written after what could not be")
		s.busy = ""
		applied(t, book, "step", wants)
		require.Len(t, s.files, 3)
	}
}

// What the node lacks for an object is asked by a check and an apply alike.
func TestPLAN17_WhatTheNodeLacksIsAsked(t *testing.T) {
	s, lacking := newShelf(t), errors.New("a plugin is missing")
	want, answer := s.want("a", "1"), lacking
	want.Ready = func(context.Context) error { return answer }
	book, wants := openMemory(&ledger.Memory{}, "a", "boot", s.kind()), ledger.Wants{List: []ledger.Want{want}}
	_, err := book.Check(t.Context(), "step", wants)
	require.ErrorIs(t, err, lacking)
	_, err = book.Apply(t.Context(), "step", wants)
	require.ErrorIs(t, err, lacking)
	require.Empty(t, s.files)
	answer = nil
	applied(t, book, "step", wants)
	require.Equal(t, "1", s.content("a"))
}

// A kind that knows an object's identity tells it from an equal one: that is its owner's.
func TestPLAN6_AnEqualObjectThatAnotherMadeIsLeftAlone(t *testing.T) {
	for _, again := range []bool{false, true} {
		s := newShelf(t)
		k := s.kind()
		k.Same = func(a, b ledger.State) bool { return a.Equal(b) && a.Identity == b.Identity }
		k.Met = func(now ledger.State, w ledger.Want) bool { return now.Equal(w.To) }
		want := s.want("a", "1")
		want.Kind = k
		book := openMemory(&ledger.Memory{}, "a", "boot", k)
		wants := ledger.Wants{List: []ledger.Want{want}}
		applied(t, book, "step", wants)
		theirs := s.files["a"]
		theirs.Identity, theirs.Changed = "a package's", time.Now().Add(-time.Hour)
		s.files["a"] = theirs
		if again { // the step agrees with it
			applied(t, book, "step", wants)
		}
		_, err := book.Undo(t.Context(), nil)
		if again {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, ledger.ErrChanged)
		}
		require.Equal(t, "1", s.content("a"))
	}
}

// What a step moves away is the original even if it was written just now; a copy of the
// agent's own is none.
func TestPLAN6_WhatAStepMovesAwayIsTheOriginalAndACopyOfItsOwnIsNot(t *testing.T) {
	s := newShelf(t)
	book := openMemory(&ledger.Memory{}, "a", "boot", s.kind())
	gone := func(change func(*ledger.Want)) {
		w := ledger.Want{Kind: s.kind(), Object: "a"}
		change(&w)
		applied(t, book, "step", ledger.Wants{List: []ledger.Want{w}})
		require.Empty(t, s.files)
	}
	s.put("a", "first")
	gone(func(*ledger.Want) {})
	s.files["a"] = ledger.State{Type: "file", Changed: time.Unix(0, 0)}.WithContent([]byte("second"))
	gone(func(*ledger.Want) {})
	s.put("a", "ours")
	gone(func(w *ledger.Want) { w.OwnCopy = true })
	undoes(t, book)
	require.Equal(t, "second", s.content("a"))
}

// What agents have removed, and that is there again, keeps nothing that it needed; what cannot
// be brought back does.
func TestPLAN6_ARestoredObjectNoLongerKeepsWhatItNeeded(t *testing.T) {
	for _, isBack := range []bool{false, true} {
		s := newShelf(t)
		k, fails := s.kind(), false
		write := k.Write
		k.Write = func(ctx context.Context, o string, to ledger.State) error {
			if fails && o == "theirs" {
				return errBad
			}
			return write(ctx, o, to)
		}
		book := openMemory(&ledger.Memory{}, "a", "boot", k)
		s.put("theirs", "old")
		ours := s.want("ours", "1")
		ours.Kind = k
		_, err := book.Apply(t.Context(), "step", ledger.Wants{List: []ledger.Want{
			ours, {Kind: k, Object: "theirs", Needs: []string{ours.ID()}},
		}})
		require.NoError(t, err)
		if isBack {
			s.put("theirs", "new")
		}
		fails = true
		_, err = book.Undo(t.Context(), nil)
		require.Error(t, err)
		require.Equal(t, isBack, s.content("ours") == "", "ours goes if theirs is there")
	}
}

// What is left on request stays as it is and claimed, with what it needs, until it is undone
// without that.
func TestPLAN12_WhatIsLeftOnRequestStaysClaimed(t *testing.T) {
	s, asked := newShelf(t), true
	k := s.kind()
	k.Leave = func(_ context.Context, object string, _ ledger.Claim) bool { return asked && object == "a" }
	book := openMemory(&ledger.Memory{}, "a", "boot", k)
	needed, a, b := s.want("needed", "1"), s.want("a", "1"), s.want("b", "1")
	a.Needs = []string{needed.ID()}
	applied(t, book, "step", ledger.Wants{List: []ledger.Want{needed, a, b}})
	undoes(t, book)
	require.Len(t, s.files, 2)
	require.Empty(t, s.content("b"))
	asked = false
	undoes(t, book)
	require.Empty(t, s.files)
}
