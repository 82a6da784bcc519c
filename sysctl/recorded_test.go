// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/sysctl"
)

// book records one step in a ledger. Without a Book it records nothing.
type book struct {
	*ledger.Book
	step string
}

// opened opens a ledger for an agent, as another process in the kernel's boot would. It
// undoes through files. Without a kernel, both are the machine's.
func opened(t *testing.T, dir, agent string, fake *bootstraptest.Kernel, files sysctl.Files, confDir string) *ledger.Book {
	t.Helper()
	boot := ""
	if fake != nil {
		boot = fake.Values()["kernel.random.boot_id"]
	}
	return openedFor(t, dir, agent, boot, sysctl.DropIn{Dir: confDir, Kernel: sysctl.Kernel{Files: files}})
}

// openedFor opens a ledger that knows the kinds of a drop-in.
func openedFor(t *testing.T, dir, agent, boot string, d sysctl.DropIn) *ledger.Book {
	t.Helper()
	b, err := (&ledger.Ledger{Dir: dir, Agent: agent, NoOwner: true, Boot: boot, Kinds: d.Kinds()}).Open(context.Background())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// real opens a ledger for the real kernel.
func real(t *testing.T, dir string) book {
	t.Helper()
	return book{opened(t, dir, "agent", nil, nil, ""), "step"}
}

func temp(t *testing.T) book {
	t.Helper()
	return real(t, filepath.Join(t.TempDir(), "state"))
}

func (b book) check(ctx context.Context, w ledger.Wanter) ([]string, error) {
	wants, err := w.Wants(ledger.With(ctx, b.Book))
	if err != nil {
		return nil, err
	}
	look, err := b.Check(ctx, b.step, wants)
	return look.Changes, errors.Join(err, look.Denied)
}

func (b book) apply(ctx context.Context, w ledger.Wanter) error {
	wants, err := w.Wants(ledger.With(ctx, b.Book))
	if err != nil {
		return err
	}
	_, err = b.Apply(ctx, b.step, wants)
	return err
}

func (b book) Revert(ctx context.Context) error {
	_, err := b.Undo(ctx, []string{b.step})
	return err
}

func (b book) CheckRevert(ctx context.Context) ([]string, error) {
	undone, err := b.CheckUndo(ctx, []string{b.step})
	return changesOf(undone), err
}

// revertAll undoes everything of the agent.
func (b book) revertAll(ctx context.Context) error {
	_, err := b.Undo(ctx, nil)
	return err
}

func changesOf(undone []ledger.Undone) (lines []string) {
	for _, u := range undone {
		if u.Change != "" && u.Err == nil {
			lines = append(lines, u.Change)
		}
	}
	return lines
}

// recordedFile is a DropIn that is recorded without a plan.
type recordedFile struct {
	sysctl.DropIn
	book
}

func (r recordedFile) Check(ctx context.Context) ([]string, error) { return r.check(ctx, r.DropIn) }
func (r recordedFile) Apply(ctx context.Context) error             { return r.apply(ctx, r.DropIn) }
func (r recordedFile) Advise(ctx context.Context) ([]string, error) {
	return r.DropIn.Advise(ledger.With(ctx, r.Book))
}

// recordedValues is a Settings that is recorded without a plan.
type recordedValues struct {
	sysctl.Settings
	book
}

func (r recordedValues) Check(ctx context.Context) ([]string, error) { return r.check(ctx, r.Settings) }
func (r recordedValues) Apply(ctx context.Context) error             { return r.apply(ctx, r.Settings) }

// neighbour is an agent of a node that has other agents as well.
type neighbour struct {
	t      *testing.T
	kernel sysctl.Kernel
	book   book
}

func newNeighbour(t *testing.T, dir, name string, k *bootstraptest.Kernel) neighbour {
	n := neighbour{t: t}
	if k != nil { // nil: the real one
		n.kernel.Files = k
	}
	n.book = book{opened(t, dir, name, k, n.kernel.Files, ""), "sysctl"}
	return n
}

func (n neighbour) settings(values ...sysctl.Setting) recordedValues {
	return recordedValues{sysctl.Settings{Values: values, Kernel: n.kernel}, n.book}
}

func (n neighbour) apply(values ...sysctl.Setting) {
	n.t.Helper()
	s := n.settings(values...)
	require.NoError(n.t, s.Apply(n.t.Context()))
	require.Empty(n.t, check(n.t, s))
}

func (n neighbour) uninstall() {
	n.t.Helper()
	require.NoError(n.t, n.book.revertAll(n.t.Context()))
}
