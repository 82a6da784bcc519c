// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/internal/testledger"
)

// recorded is a Writer that records in a directory, as an agent. Without a directory, it
// records nothing.
type recorded struct {
	configdir.Writer
	t     testing.TB
	state string
	agent string
}

func newRecorded(t *testing.T, root string, v values) recorded {
	t.Helper()
	return recorded{configdir.Writer{Path: filepath.Join(root, "d"), Config: config(t, v)}, t, filepath.Join(root, "state"), "agent"}
}

// as is the step in the book of a new process.
func (r recorded) as(w ledger.Wanter, kind *ledger.Kind) testledger.Step {
	if r.state == "" {
		return testledger.Step{Wanter: w}
	}
	return testledger.Step{Wanter: w, Book: testledger.OpenFor(r.t, r.state, r.agent, kind)}
}

func (r recorded) Check(ctx context.Context) ([]string, error) {
	return r.as(r.Writer, configdir.Kind()).Check(ctx)
}

func (r recorded) Apply(ctx context.Context) error {
	return r.as(r.Writer, configdir.Kind()).Apply(ctx)
}

func (r recorded) Undo(ctx context.Context) error { return r.as(nil, configdir.Kind()).Undo(ctx) }

func (r recorded) CheckUndo(ctx context.Context) ([]string, error) {
	return r.as(nil, configdir.Kind()).CheckUndo(ctx)
}

func (r recorded) applyStep(ctx context.Context, step func(string)) error {
	return r.as(configdir.Stepped{Writer: r.Writer, Step: step}, configdir.KindStep(step)).Apply(ctx)
}

func (r recorded) undoStep(ctx context.Context, step func(string)) error {
	return r.as(nil, configdir.KindStep(step)).Undo(ctx)
}

// A process has a plan with two configurations, and writes one of them anew later.
func TestCFG7_OneLedgerHasSeveralConfigurations(t *testing.T) {
	root := t.TempDir()
	step := testledger.Step{Book: testledger.Open(t, filepath.Join(root, "state"))}
	for i, name := range []string{"one", "two", "one"} {
		w := configdir.Writer{Path: filepath.Join(root, name), Config: config(t, values{"k": fmt.Sprint(i)})}
		step.Wanter = w
		require.NoError(t, step.Apply(t.Context()))
		requireLayout(t, w.Path, w.Config)
	}
}
