// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package reconcile_test

import (
	"context"
	"fmt"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/reconcile"
)

// A watch of the configuration triggers a run after each change.
func ExampleLoop() {
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default: // a run is due already
		}
	}
	on, want := false, true
	plan := &bootstrap.Plan{Steps: []bootstrap.Step{{Name: "lamp", Action: bootstrap.Func(
		"switch the lamp", func(context.Context) (bool, error) { return on == want, nil },
		func(context.Context) error { on = want; return nil },
	)}}}

	ctx, stop := context.WithCancel(context.Background())
	loop := reconcile.Loop{Plan: plan, Trigger: changed, Done: func(r *bootstrap.Report, err error) {
		fmt.Println(r.Results[0].Status, r.Results[0].Changes, err)
		if !want {
			stop()
		}
		want = false // the configuration changes
		notify()
	}}
	fmt.Println(loop.Run(ctx))
	// Output:
	// changed [switch the lamp] <nil>
	// changed [switch the lamp] <nil>
	// <nil>
}
