// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostlocal_test

import (
	"context"
	"fmt"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/bootstrap/hostlocal"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
)

// The step is optional: a node works with a few leaked addresses.
func Example() {
	host := hostns.Host{Proc: "/hostproc"}
	step := bootstrap.Step{Name: "addresses", Optional: true, Action: hostlocal.Store{
		Network:   "agent",
		Enter:     host.Do,
		Sandboxes: cri.Endpoint{HostProc: host.Proc}.SandboxIDs,
	}}
	plan := bootstrap.Plan{Host: host, Steps: []bootstrap.Step{step}}
	fmt.Println(plan.Apply(context.Background()))
}
