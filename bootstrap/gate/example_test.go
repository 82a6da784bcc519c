// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package gate_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/gate"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
)

// Gates come first in a plan, and look at the host.
func Example() {
	host := hostns.Host{Proc: "/hostproc"}
	rules := gate.KubeProxy()
	rules.Timeout = time.Minute
	plan := bootstrap.Plan{Steps: []bootstrap.Step{
		{Name: "kube-proxy", Action: host.In(hostns.Net, rules)},
		{Name: "runtime", Action: host.In(hostns.Mount, gate.File("/run/containerd/containerd.sock"))},
	}}
	fmt.Println(plan.Validate())
	// Output: <nil>
}

func ExampleTCP() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer listener.Close()
	fmt.Println(gate.TCP(listener.Addr().String()).Apply(context.Background()))
	// Output: <nil>
}
