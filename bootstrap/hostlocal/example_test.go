// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostlocal_test

import (
	"fmt"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/bootstrap/hostlocal"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
)

// A step of an agent's plan. It is optional: with a few leaked addresses, a node can
// do its work.
func Example() {
	host := hostns.Host{Proc: "/hostproc"}
	step := bootstrap.Step{Name: "addresses", Optional: true, Action: hostlocal.Store{
		Network:   "agent",
		Enter:     host.Enter,
		Sandboxes: cri.Endpoint{HostProc: host.Proc}.SandboxIDs,
	}}
	plan := bootstrap.Plan{Host: host, Steps: []bootstrap.Step{step}}
	fmt.Println(plan.Validate())
	// Output: <nil>
}
