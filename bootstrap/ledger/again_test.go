// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// boots is a node with values that end with the boot, and files that do not. A file changes
// the value "along" when it is written.
type boots struct {
	values map[string]string
	deaf   string // a value that silently stays as it is
}

func (b *boots) kind(name string) *ledger.Kind {
	return &ledger.Kind{
		Name: name, Rounds: name == "value", EndsWithBoot: func(string) bool { return name == "value" },
		Read: func(_ context.Context, object string) (ledger.State, error) {
			if b.values[object] == "" {
				return ledger.State{}, nil
			}
			return ledger.State{Type: name, Value: b.values[object]}, nil
		},
		Write: func(_ context.Context, object string, to ledger.State) error {
			if object != b.deaf {
				b.values[object] = to.Value
			}
			if name == "file" && !to.IsZero() {
				b.values["along"] = to.Value
			}
			return nil
		},
		Along: func(_ context.Context, _ string, to ledger.State) ([]ledger.Side, error) {
			if name != "file" || to.IsZero() {
				return nil, nil
			}
			side := ledger.State{Type: "value", Value: to.Value}
			return []ledger.Side{{Kind: b.kind("value"), Object: "along", To: side, Boot: true, Change: "change along"}}, nil
		},
	}
}

// wants are a file, and a value that it sets again at each boot.
func (b *boots) wants() ledger.Wants {
	file := ledger.Want{Kind: b.kind("file"), Object: "file", To: ledger.State{Type: "file", Value: "1"}}
	value := ledger.Want{Kind: b.kind("value"), Object: "again", To: ledger.State{Type: "value", Value: "1"}, Again: file.ID()}
	return ledger.Wants{List: []ledger.Want{value, file}}
}

func newBoots() (*boots, func(boot string) *ledger.Book, *ledger.Memory) {
	b, m := &boots{values: map[string]string{"again": "0", "along": "0"}}, &ledger.Memory{}
	return b, func(boot string) *ledger.Book {
		l := &ledger.Ledger{Agent: "acme", NoOwner: true, Kinds: []*ledger.Kind{b.kind("value"), b.kind("file")}}
		return l.OpenIn(m, boot)
	}, m
}

// What the file has set again is put back; what its writing has changed along is as the new
// boot has made it.
func TestPLAN6_WhatAFileSetsAgainAtEachBootOutlastsIt(t *testing.T) {
	b, open, m := newBoots()
	look := checked(t, open("1"), "s", b.wants())
	require.Equal(t, []string{"write value again", "write file file", "change along"}, look.Changes)
	applied(t, open("1"), "s", b.wants())
	require.Equal(t, map[string]string{"again": "1", "along": "1", "file": "1"}, b.values)
	undone := undoes(t, open("2"))
	require.Equal(t, map[string]string{"again": "0", "along": "1", "file": ""}, b.values)
	require.Equal(t, "file", undone[0].Object, "first what needs the other")
	require.Empty(t, m.Content)
}

// A file that an agent has only found sets nothing for it.
func TestPLAN6_WhatAFoundFileSetsEndsWithTheBoot(t *testing.T) {
	b, open, m := newBoots()
	b.values["file"] = "1"
	applied(t, open("1"), "s", b.wants())
	undoes(t, open("2"))
	require.Equal(t, map[string]string{"again": "1", "along": "0", "file": "1"}, b.values)
	require.Empty(t, m.Content)
}

// What is written without an error may be refused all the same: then it is in no file.
func TestPLAN6_WhatNeedsAValueThatIsRefusedSilentlyIsLeftOff(t *testing.T) {
	b, open, _ := newBoots()
	b.deaf = "again"
	_, err := open("1").Apply(t.Context(), "s", b.wants())
	require.ErrorIs(t, err, ledger.ErrRefused)
	require.ErrorContains(t, err, "left off: it needs again")
	require.Equal(t, map[string]string{"again": "0", "along": "0"}, b.values)
}

// A value that was as wanted, and was changed back by a later write, is written again.
func TestPLAN6_AValueThatALaterWriteChangesBackIsWrittenAgain(t *testing.T) {
	b, open, _ := newBoots()
	wants := b.wants()
	wants.List[0].Object, wants.List[0].To.Value = "along", "2"
	applied(t, open("1"), "s", wants)
	require.Equal(t, "2", b.values["along"])
}
