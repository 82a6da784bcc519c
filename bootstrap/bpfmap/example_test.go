// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpfmap_test

import (
	"context"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bpfmap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bpffs"
)

// These steps of an agent's plan run before its programs are loaded.
func Example() {
	endpoints := &ebpf.MapSpec{Name: "endpoints", Type: ebpf.Hash, KeySize: 4, ValueSize: 8, MaxEntries: 16384}
	plan := bootstrap.Plan{Host: hostns.Host{}, Steps: []bootstrap.Step{
		{Name: "bpffs", Wants: bpffs.Mount{}},
		{Name: "maps", After: []string{"bpffs"}, Wants: bpfmap.Pinned{Dir: "/sys/fs/bpf/agent", Maps: []*ebpf.MapSpec{endpoints}}},
	}}
	fmt.Println(plan.Apply(context.Background()))
}
