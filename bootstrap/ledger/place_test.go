// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/durable"
)

// container has the values that one mount namespace has. Its kind has the same name as the
// others'.
type container struct {
	values map[string]string
	kind   *ledger.Kind
	wants  ledger.Wants
}

func newContainer() container {
	values := map[string]string{}
	k, wants := kept(values)
	return container{values, k, wants}
}

func openMemory(m *ledger.Memory, agent, boot string, kinds ...*ledger.Kind) *ledger.Book {
	return (&ledger.Ledger{Agent: agent, Kinds: kinds}).OpenIn(m, boot)
}

// Objects of the same name are one only if they are on the host. One in a container is its
// agent's and its namespace's.
func TestPLAN6_PLAN14_EachContainerHasItsOwnObjects(t *testing.T) {
	m := &ledger.Memory{}
	host, acme, mesh := newContainer(), newContainer(), newContainer()
	host.values["a"], mesh.values["a"] = "0", "9"
	for _, c := range []struct {
		container
		agent, namespace string
	}{{host, "acme", ""}, {acme, "acme", "mnt:[2]"}, {mesh, "mesh", "mnt:[3]"}} {
		book := openMemory(m, c.agent, "boot", c.kind)
		if c.namespace != "" {
			book = book.Local(c.namespace)
		}
		applied(t, book, "s", c.wants)
	}
	status := statusOf(t, openMemory(m, "acme", "boot"))
	var ids, namespaces []string
	for _, r := range status.Records {
		ids, namespaces = append(ids, r.ID), append(namespaces, r.Namespace)
	}
	require.Equal(t, []string{"value a", "value@acme@mnt:[2] a", "value@mesh@mnt:[3] a"}, ids)
	require.Equal(t, []string{"", "mnt:[2]", "mnt:[3]"}, namespaces)

	undo := func(c container, agent, namespace string) {
		book := openMemory(m, agent, "boot", c.kind)
		if namespace != "" {
			book = book.Local(namespace)
		}
		undoes(t, book)
	}
	undo(host, "acme", "")
	require.Equal(t, map[string]string{"a": "0"}, host.values)
	require.Equal(t, map[string]string{"a": "1"}, acme.values, "another side is left alone")
	undo(mesh, "mesh", "mnt:[3]")
	require.Equal(t, map[string]string{"a": "9"}, mesh.values)
	undo(acme, "acme", "mnt:[2]")
	require.Empty(t, acme.values)
	require.Nil(t, m.Content)
}

// What was recorded in a namespace goes with it: it is neither undone in the next one, nor
// in the way there.
func TestPLAN6_RecordsOfAContainerEndWithIt(t *testing.T) {
	m := &ledger.Memory{}
	first, next := newContainer(), newContainer()
	next.values["a"] = "of the image"
	applied(t, openMemory(m, "acme", "boot", first.kind).Local("mnt:[2]"), "s", first.wants)
	book := openMemory(m, "acme", "boot", next.kind).Local("mnt:[3]")
	undoes(t, book)
	require.Equal(t, "of the image", next.values["a"])
	require.Nil(t, m.Content)
	applied(t, book, "s", next.wants)
	rebooted := openMemory(m, "acme", "another boot", next.kind).Local("mnt:[3]")
	next.values["a"] = "of the image again"
	undoes(t, rebooted)
	require.Equal(t, "of the image again", next.values["a"])
}

// A damaged record of a container's object is named by the ID that forgets it, and an agent
// that is released leaves none.
func TestPLAN14_RecordsOfContainersAreForgottenAndReleased(t *testing.T) {
	m := &ledger.Memory{}
	c := newContainer()
	local := func() *ledger.Book { return openMemory(m, "acme", "boot", c.kind).Local("mnt:[2]") }
	applied(t, local(), "s", c.wants)
	whole := m.Content
	m.Content = append([]byte(nil), whole...)
	m.Content[len(whole)-10] ^= 1
	_, err := local().Apply(t.Context(), "s", c.wants)
	require.ErrorIs(t, err, ledger.ErrUnreadable)
	status := statusOf(t, openMemory(m, "acme", "boot"))
	require.Equal(t, []string{"value@acme@mnt:[2] a"}, status.Damaged)
	require.NoError(t, local().Forget(t.Context(), status.Damaged...))
	require.Nil(t, m.Content)

	m.Content = whole
	require.NoError(t, openMemory(m, "acme", "boot").Forget(t.Context(), "value@acme@mnt:[2] a"))
	require.Nil(t, m.Content)

	m.Content = whole
	_, err = openMemory(m, "admin", "boot").Release(t.Context(), "acme")
	require.NoError(t, err)
	require.Nil(t, m.Content)
}

// An object that says itself whose it is, and is not recorded, is an orphan, unless it was
// left in place. That is remembered until it has gone, or is claimed again.
func TestPLAN18_Orphans(t *testing.T) {
	c := newContainer()
	c.kind.Find = func(context.Context) (found []ledger.Marked, err error) {
		for object := range c.values {
			found = append(found, ledger.Marked{Object: object, Agent: "acme", Remove: "rm " + object})
		}
		return found, errors.Join()
	}
	m := &ledger.Memory{}
	book := func() *ledger.Book { return openMemory(m, "acme", "boot", c.kind) }
	orphans := func() (objects []string) {
		found, err := book().Orphans(t.Context())
		require.NoError(t, err)
		for _, o := range found {
			require.Equal(t, "value", o.Kind)
			objects = append(objects, o.Object)
		}
		return objects
	}
	apply := func() {
		applied(t, book(), "s", c.wants)
	}
	require.Empty(t, orphans())
	c.values["a"] = "1"
	require.Equal(t, []string{"a"}, orphans())
	for what, leave := range map[string]func() error{
		"forgotten": func() error { return book().Forget(t.Context(), "value a") },
		"released":  func() error { _, err := book().Release(t.Context(), "acme"); return err },
		"accepted": func() error {
			c.values["a"] = "edited"
			_, err := book().Accepting().Undo(t.Context(), nil)
			return err
		},
	} {
		delete(c.values, "a")
		apply()
		require.Empty(t, orphans())
		require.NoError(t, leave(), what)
		require.NotEmpty(t, c.values)
		require.Empty(t, orphans(), what)
		status := statusOf(t, book())
		require.Equal(t, ledger.Status{Left: []string{"value a"}}, status)
		delete(c.values, "a")
		undoes(t, book())
		require.Nil(t, m.Content, "it has gone")
	}
}

// All agents are undone at once, dependents first whosever they are, if each may be.
func TestPLAN12_PLAN14_AllAgentsAtOnce(t *testing.T) {
	m, c := &ledger.Memory{}, newContainer()
	for _, agent := range []string{"acme", "mesh"} {
		book := (&ledger.Ledger{Agent: agent, Owner: "of " + agent}).OpenIn(m, "boot")
		require.NoError(t, book.Claim(t.Context()))
		applied(t, book, "s", c.wants)
	}
	admin := ledger.Ledger{Agent: "admin", NoOwner: true, AllAgents: true, Kinds: []*ledger.Kind{c.kind}}
	err := admin.OpenIn(m, "boot").MayUndo(t.Context())
	require.ErrorIs(t, err, ledger.ErrNotOwner)
	require.ErrorContains(t, err, `agent "acme": `)
	require.ErrorContains(t, err, `agent "mesh": `)
	admin.AnyOwner = true
	book := admin.OpenIn(m, "boot")
	require.NoError(t, book.MayUndo(t.Context()))
	undone := undoes(t, book)
	require.Len(t, undone, 1)
	require.Equal(t, "mesh/s", undone[0].Agent+"/"+undone[0].Step, "whose claim prevailed")
	require.Empty(t, c.values)
	require.Nil(t, m.Content)
}

// An object whose one name cannot be resolved for a moment, although it can be read, is not
// recorded under another one.
func TestPLAN3_PLAN6_ANameThatIsNotKnownIsNotRecorded(t *testing.T) {
	var failure error
	made := false
	k := &ledger.Kind{
		Name: "thing", Canonical: func(object string) (string, error) { return object, failure },
		Read: func(context.Context, string) (ledger.State, error) {
			return map[bool]ledger.State{true: {Type: "thing"}}[made], nil
		},
		Write: func(_ context.Context, _ string, to ledger.State) error { made = !to.IsZero(); return nil },
	}
	book := (&ledger.Ledger{Agent: "acme"}).OpenIn(&ledger.Memory{}, "boot")
	wants := ledger.Wants{List: []ledger.Want{{Kind: k, Object: "a", To: ledger.State{Type: "thing"}}}}
	failure = errors.New("input/output error")
	_, err := book.Apply(t.Context(), "s", wants)
	require.ErrorIs(t, err, failure)
	require.False(t, made)
	_, err = book.Check(t.Context(), "s", wants)
	require.ErrorIs(t, err, failure)
	failure = nil
	_, err = book.Apply(t.Context(), "s", wants)
	require.NoError(t, err)
	require.True(t, made)
}

// A directory is not taken for one that nothing is mounted on if that cannot be told.
func TestPLAN3_PLAN6_WhatIsMountedOnADirectoryIsNotGuessed(t *testing.T) {
	root := t.TempDir()
	info, err := os.Stat(root)
	require.NoError(t, err)
	d, err := durable.OpenDir(root)
	require.NoError(t, err)
	_, err = ledger.IsCovered(d, info)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	_, err = ledger.IsCovered(d, info)
	require.ErrorIs(t, err, os.ErrClosed)
}
