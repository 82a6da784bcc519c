// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// recordedPlay is a node with the records of two agents, one of them in the middle of a
// write.
func recordedPlay(t *testing.T) *play {
	t.Helper()
	p := newPlay("")
	for _, o := range parseScript(t, `
		override 1
		torn "f:/h"=L7
		apply 0 s "v:a"=1 "v:c\xff\\"=2 "f:/h"=1 "d:/d"=dir
		apply 1 s "v:c\xff\\"=3 "m:/m"=ours "f:/d/f"=2,secret
		apply 1 t "v:a"=2 kill=3`) {
		require.NoError(t, p.do(o))
	}
	return p
}

// records describes what is recorded, each in JSON.
func records(t *testing.T, content []byte) (map[string]string, ledger.Status, error) {
	t.Helper()
	status, err := (&ledger.Ledger{Agent: "a"}).OpenIn(&ledger.Memory{Content: content}, "boot0").Status(t.Context())
	all := map[string]string{}
	for _, r := range status.Records {
		text, err := json.Marshal(r)
		require.NoError(t, err)
		all[r.Kind+" "+r.Object] = fmt.Sprintf("%s %q", text, r.Object)
	}
	return all, status, err
}

// A damaged byte stops the object of its own record, or the whole file if it is in the
// first line; then the others are salvaged. Nothing is read that was not written.
func TestPLAN14_EveryDamagedByte(t *testing.T) {
	whole := recordedPlay(t).memory.Content
	want, _, err := records(t, whole)
	require.NoError(t, err)
	require.Len(t, want, 7)
	head := bytes.IndexByte(whole, '\n')
	for i := range whole {
		for _, flip := range []byte{1, 0x20, 0x80, whole[i] ^ '\n'} {
			damaged := bytes.Clone(whole)
			if damaged[i] ^= flip; flip == 0 {
				continue
			}
			got, status, err := records(t, damaged)
			if err != nil {
				require.ErrorIs(t, err, ledger.ErrUnreadable)
				require.LessOrEqual(t, i, head)
				got, status = salvaged(t, damaged)
			}
			require.Subset(t, want, got, "byte %d", i)
			require.GreaterOrEqual(t, len(got), len(want)-1, "byte %d ^ %d\n%s", i, flip, damaged)
			if err == nil {
				require.Equal(t, len(want)-len(got), len(status.Damaged), "byte %d", i)
			}
		}
	}
}

// salvaged is what Salvage finds.
func salvaged(t *testing.T, content []byte) (map[string]string, ledger.Status) {
	t.Helper()
	m := &ledger.Memory{Content: content}
	require.NoError(t, (&ledger.Ledger{Agent: "a"}).OpenIn(m, "boot0").Salvage(t.Context()))
	got, status, err := records(t, m.Content)
	require.NoError(t, err)
	return got, status
}

// Of a file that was cut off the records up to there count, and it is known whose are
// missing.
func TestPLAN14_EveryTruncation(t *testing.T) {
	whole := recordedPlay(t).memory.Content
	want, _, err := records(t, whole)
	require.NoError(t, err)
	head := bytes.IndexByte(whole, '\n')
	for n := range whole {
		got, status, err := records(t, whole[:n])
		if n < head {
			require.ErrorIs(t, err, ledger.ErrUnreadable, "%d bytes", n)
			continue
		}
		require.NoError(t, err)
		require.Subset(t, want, got)
		require.Equal(t, len(want), len(got)+len(status.Damaged))
		require.GreaterOrEqual(t, len(got), bytes.Count(whole[:n], []byte("\n\n"))-1, "%d bytes", n)
	}
}

// A damaged record stops its own object, survives each change of the others, and goes by
// forget.
func TestPLAN14_ADamagedRecordStopsItsOwnObject(t *testing.T) {
	p := recordedPlay(t)
	at := bytes.Index(p.memory.Content, []byte(`"object":"/h"`))
	p.memory.Content[at+3] ^= 1
	apply := func(object, to string) error {
		_, err := p.book(0).Apply(t.Context(), "s", ledger.Wants{List: p.wants(op{wants: []want{{object: object, to: to}}})})
		return err
	}
	require.NoError(t, apply("v:z", "1"))
	require.ErrorIs(t, apply("f:/h", "2"), ledger.ErrUnreadable)
	require.Equal(t, "1", p.node.state("f:/h"))
	for agent := range 2 {
		_, err := p.book(agent).Undo(t.Context(), nil)
		require.ErrorIs(t, err, ledger.ErrUnreadable)
		require.ErrorContains(t, err, "path /h", "it is named")
	}
	require.Equal(t, "0", p.node.state("v:a"))
	require.NoError(t, p.book(1).Forget(t.Context(), ledger.Want{Kind: p.node.kinds()["f"], Object: "/h"}.ID()))
	require.Nil(t, p.memory.Content)
	require.Empty(t, p.memory.Contents)
}

// A file of a later schema is refused, with the remedy.
func TestPLAN6_ALaterSchemaIsRefused(t *testing.T) {
	p := recordedPlay(t)
	raw := bytes.SplitN(p.memory.Content, []byte("\n"), 2)[0][17:]
	p.memory.Content = slices.Concat(ledger.Line(bytes.Replace(raw, []byte(`"schema":1`), []byte(`"schema":2`), 1)), nil)
	_, err := p.book(0).Apply(t.Context(), "s", ledger.Wants{})
	require.ErrorIs(t, err, ledger.ErrUnreadable)
	require.ErrorContains(t, err, "use the program that wrote it")
	require.ErrorContains(t, p.book(0).Salvage(t.Context()), "use the program that wrote it")
}
