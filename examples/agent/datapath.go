// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"flag"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bpfmap"
	"github.com/slipway-dev/slipway/cleanup"
)

const stepTemplates = "templates"

// datapathFlags set what the programs of a datapath, which this agent does not have,
// would find.
type datapathFlags struct {
	maps, templates string
	endpoints       uint
}

func (d *datapathFlags) flags(f *flag.FlagSet) {
	f.StringVar(&d.maps, "maps", "", "directory of pinned maps, on the host's BPF file system, which survive restarts; empty: none")
	f.UintVar(&d.endpoints, "endpoints", 16384, "size of the map of endpoints; changing it makes a new map")
	f.StringVar(&d.templates, "templates", "", "directory of an earlier start's compiled templates, on the host, to remove; empty: none")
}

func (a *agent) datapathSteps() (steps []bootstrap.Step, err error) {
	if a.datapath.maps != "" {
		if err := rlimit.RemoveMemlock(); err != nil { // no effect since Linux 5.11
			return nil, fmt.Errorf("--maps: %w", err)
		}
		endpoints := &ebpf.MapSpec{Name: "slipway_endpoints", Type: ebpf.Hash, KeySize: 16, ValueSize: 32, MaxEntries: uint32(a.datapath.endpoints)}
		steps = append(steps, bootstrap.Step{Name: "maps", After: []string{"bpffs"}, Wants: bpfmap.Pinned{
			Dir: a.datapath.maps, Maps: []*ebpf.MapSpec{endpoints},
		}})
	}
	if a.datapath.templates != "" {
		steps = append(steps, bootstrap.Step{Name: stepTemplates, Action: cleanup.Leftovers{
			Ownership: cleanup.Ownership{Exceptions: []cleanup.Exception{{Kind: "directory", Name: a.datapath.templates}}}, Scope: "all-state",
		}})
	}
	return steps, nil
}
