// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"context"
	"fmt"

	"github.com/slipway-dev/slipway/bootstrap"
)

// noTunnel is an error of an agent's own action.
type noTunnel struct{ port int }

func (e noTunnel) Error() string { return fmt.Sprintf("port %d is taken", e.port) }
func (noTunnel) Code() string    { return "tunnel.port-taken" }

// Your own action's error carries a code, which groups the failures of many nodes.
func ExampleCode() {
	tunnel := bootstrap.Func(
		"open the tunnel", func(context.Context) (bool, error) { return false, nil },
		func(context.Context) error { return fmt.Errorf("open the tunnel: %w", noTunnel{8472}) },
	)
	plan := bootstrap.Plan{Steps: []bootstrap.Step{{Name: "tunnel", Action: tunnel}}}
	_, err := plan.Apply(context.Background())
	fmt.Println(err)
	fmt.Println(bootstrap.Code(err))
	// Output:
	// step tunnel: apply: open the tunnel: port 8472 is taken
	// tunnel.port-taken
}
