// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kmod_test

import (
	"context"
	"fmt"
	"log"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/kmod"
)

// The modules for transparent proxying are loaded on the host from inside a container.
func Example() {
	modules := kmod.Modules{List: []string{"xt_TPROXY", "xt_socket"}, Load: true}
	plan := bootstrap.Plan{
		Host:  hostns.Host{Proc: "/hostproc"},
		Steps: []bootstrap.Step{{Name: "modules", Action: modules}},
	}
	report, err := plan.Apply(context.Background())
	if err != nil {
		log.Fatal(err) // names the modules that the kernel lacks, or that cannot be loaded
	}
	fmt.Println(report)
}
