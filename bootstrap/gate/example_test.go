// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package gate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/gate"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
)

// Gates are waited for before the plan touches the node, and examine the host.
func Example() {
	host := hostns.Host{Proc: "/hostproc"}
	rules := gate.KubeProxy()
	rules.Timeout = time.Minute
	plan := bootstrap.Plan{Host: host, Gates: []bootstrap.Step{
		{Name: "kube-proxy", Gate: rules},
		{Name: "runtime", Gate: gate.File("/run/containerd/containerd.sock")},
	}}
	fmt.Println(plan.Apply(context.Background()))
}
