// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/code"
)

// leaving is an action that makes nothing, and whose Undo removes what another program has made.
type leaving struct {
	bootstrap.Action
	made *bool
	err  error
}

func (l leaving) Undo(context.Context) error { *l.made = false; return l.err }

func (l leaving) CheckUndo(context.Context) ([]string, error) {
	if *l.made && l.err == nil {
		return []string{"remove it"}, nil
	}
	return nil, l.err
}

func TestPLAN4_AnActionMaySayWhatItWouldUndo(t *testing.T) {
	made := true
	nothing := bootstrap.Func("nothing", func(context.Context) (bool, error) { return true, nil }, func(context.Context) error { return nil })
	action := leaving{Action: nothing, made: &made}
	p := &bootstrap.Plan{Steps: []bootstrap.Step{step("a", action)}}
	for _, want := range []struct {
		run   runner
		shows string
		lists []string
	}{
		{(*bootstrap.Plan).CheckRevert, "a would-change", []string{"remove it"}},
		{(*bootstrap.Plan).Revert, "a changed", []string{"remove it"}},
		{(*bootstrap.Plan).CheckRevert, "a unchanged", nil},
		{(*bootstrap.Plan).Revert, "a unchanged", nil},
	} {
		report, err := want.run(p, t.Context())
		require.NoError(t, err)
		require.Equal(t, want.shows, statuses(report))
		require.Equal(t, want.lists, report.Results[0].Changes)
	}
	action.err = errors.New("it is in use")
	p.Steps[0].Action = action
	report, err := p.CheckRevert(t.Context())
	require.ErrorContains(t, err, "it is in use")
	require.Equal(t, "a failed", statuses(report))
}

// What pods live on is undone with what they need for their deletion, and not before.
func TestPLAN12_CNI8_AllIsUninstalledOrNothing(t *testing.T) {
	network, sysctls, made := newShelf("network"), newShelf("sysctls"), true
	nothing := bootstrap.Func("nothing", func(context.Context) (bool, error) { return true, nil }, func(context.Context) error { return nil })
	p := on(node(t.TempDir(), "pod"), wants("sysctl", sysctls.want("forwarding=1")), wants("cni", network.want("conf=x")), step("left", leaving{Action: nothing, made: &made}))
	_, err := p.Apply(t.Context())
	require.NoError(t, err)

	network.inUse = code.New(code.CNIInUse, "sandboxes need it")
	for _, undo := range []func(context.Context) (*bootstrap.Report, error){p.CheckUninstall, p.Uninstall} {
		report, err := undo(t.Context())
		require.ErrorIs(t, err, network.inUse)
		require.Equal(t, "left not-run\ncni failed\nsysctl not-run", statuses(report))
		require.Empty(t, report.Results[2].Changes)
	}
	require.Equal(t, []any{"1", true}, []any{sysctls.values["forwarding"], made})
	asked(t, p.Ledger.Dir, func(b *ledger.Book) {
		agents, err := b.Agents(t.Context())
		require.NoError(t, err)
		require.Contains(t, string(agents[0].Report), "sandboxes need it", "and status says so")
	})
	network.inUse = nil
	report, err := p.Uninstall(t.Context())
	require.NoError(t, err)
	require.Equal(t, "left changed\ncni changed\nsysctl changed", statuses(report))
	require.False(t, made)
}
