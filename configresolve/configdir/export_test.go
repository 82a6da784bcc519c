// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir

import (
	"context"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// Stepped is a Writer that calls Step before each change it makes to the layout.
type Stepped struct {
	Writer
	Step func(string)
}

func (s Stepped) Wants(ctx context.Context) (ledger.Wants, error) {
	return job{dir: s.Path, want: s.Config.Data(), step: s.Step}.wants(ctx)
}

// Write is the function Write.
func (s Stepped) Write(ctx context.Context) (changed bool, err error) {
	return job{dir: s.Path, want: s.Config.Data(), step: s.Step}.writeAlone(ctx)
}

// KindStep is Kind, and calls step before each change.
func KindStep(step func(string)) *ledger.Kind { return job{step: step}.kind() }
