// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

type wantFile string

func (w wantFile) Wants(context.Context) (ledger.Wants, error) {
	to := ledger.State{Type: "file", Mode: 0o644}.WithContent([]byte("hello"))
	return ledger.Wants{List: []ledger.Want{{Kind: ledger.File(), Object: string(w), To: to}}}, nil
}

// A step's wants are brought about, recorded and undone.
func TestPLAN6_AStepWithWantsIsRecordedAndUndone(t *testing.T) {
	dir := t.TempDir()
	p := &bootstrap.Plan{
		Host:   hostns.Host{Here: true, LockFile: filepath.Join(dir, "lock")},
		Ledger: &ledger.Ledger{Dir: filepath.Join(dir, "state"), Agent: "acme", NoOwner: true},
		Steps:  []bootstrap.Step{{Name: "file", Wants: wantFile(filepath.Join(dir, "file"))}},
	}
	roundTrip(t, p, filepath.Join(dir, "file"))
}

func roundTrip(t *testing.T, p *bootstrap.Plan, file string) {
	r, err := p.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, bootstrap.WouldChange, r.Results[0].Status)
	for _, status := range []bootstrap.Status{bootstrap.Changed, bootstrap.Unchanged} {
		r, err = p.Apply(t.Context())
		require.NoError(t, err)
		require.Equal(t, status, r.Results[0].Status)
	}
	r, err = p.CheckRevert(t.Context())
	require.NoError(t, err)
	require.Equal(t, bootstrap.WouldChange, r.Results[0].Status)
	r, err = p.RevertAll(t.Context())
	require.NoError(t, err)
	require.True(t, r.Changed())
	require.NoFileExists(t, file)
	_, err = p.Apply(t.Context())
	require.NoError(t, err)
	r, err = p.Revert(t.Context())
	require.NoError(t, err)
	require.Equal(t, bootstrap.Changed, r.Results[0].Status)
	require.NoFileExists(t, file)
	require.NoDirExists(t, p.Ledger.Dir)
}
