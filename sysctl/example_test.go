// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/sysctl"
)

// The example applies Cilium's settings, in its own directory and kernel.
func Example() {
	dir, err := os.MkdirTemp("", "sysctl")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	kernel := bootstraptest.NewKernel("eth0", "lxc1")
	kernel.PutValue("net.ipv4.conf.lxc1.rp_filter", "1")
	ctx := context.Background()

	file := sysctl.Cilium()
	file.Dir, file.Kernel = dir, sysctl.Kernel{Files: kernel} // on a node: /etc/sysctl.d and the running kernel
	plan := bootstrap.Plan{
		Host:   hostns.Host{Here: true, LockFile: filepath.Join(dir, "lock")},
		Ledger: &ledger.Ledger{Dir: filepath.Join(dir, "ledger"), Agent: "acme", NoOwner: true},
		Steps:  []bootstrap.Step{{Name: "sysctl", Wants: file}},
	}
	changes, err := file.Check(ctx)
	fmt.Println(changes[:1], err)
	report, err := plan.Apply(ctx)
	fmt.Println(report.Results[0].Status, err)
	report, err = plan.Apply(ctx)
	fmt.Println(report.Results[0].Status, err)
	_, err = plan.Revert(ctx)
	fmt.Println(err)
	value, err := sysctl.Kernel{Files: kernel}.Get("net.ipv4.conf.lxc1.rp_filter")
	fmt.Println(value, err)
	// Output:
	// [set net.ipv4.conf.lxc1.rp_filter = 0 (is 1)] <nil>
	// changed <nil>
	// unchanged <nil>
	// <nil>
	// 1 <nil>
}

func ExampleParseKey() {
	for _, spelling := range []string{"net.ipv4.conf.eth0/100.rp_filter", "net/ipv4/conf/eth0.100/rp_filter", "net/../passwd"} {
		fmt.Println(sysctl.ParseKey(spelling))
	}
	// Output:
	// net.ipv4.conf.eth0/100.rp_filter <nil>
	// net.ipv4.conf.eth0/100.rp_filter <nil>
	//  not a sysctl key: "net/../passwd" has the element ..
}
