// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command inject plays every fault at every call of nodeinit's commands, or a
// share of them, and prints how many there were and what went wrong. It goes on
// where it was ended: what was played is in the state file. It needs Linux, root
// and strace.
//
//	go run ./internal/verify/faults/inject -state faults.json
//	go run ./internal/verify/faults/inject -shard 1/4 -scenario apply,uninstall
//	go run ./internal/verify/faults/inject -seed 26 -for 10m
//	go run ./internal/verify/faults/inject -power 200
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	c := campaign{}
	flag.StringVar(&c.state, "state", "", "where to note what was played, one JSON document a line; played points are not played again; empty: nowhere")
	flag.StringVar(&c.shard, "shard", "0/1", "which share of the points, I/N")
	flag.IntVar(&c.limit, "limit", 0, "how many points of each scenario, spread over all; 0: all")
	flag.Uint64Var(&c.seed, "seed", 0, "of the sample that -limit or -for takes")
	flag.DurationVar(&c.last, "for", 0, "how long to play, shared by the scenarios; 0: until all is played")
	flag.StringVar(&c.point, "point", "", "only points whose name starts so, such as apply/fsync/3/EIO")
	flag.IntVar(&c.power, "power", 0, "instead: how many power cuts of each command and file system")
	scenarios := flag.String("scenario", "leaf-config,leaf-host-paths,leaf-cgroup,leaf-sysctl,leaf-bpffs,leaf-cni,apply,update,uninstall,install-cni,build-config,cleanup", "which scenarios")
	flag.Parse()
	c.scenarios = strings.Split(*scenarios, ",")
	if err := c.run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type campaign struct {
	state, shard, point string
	limit, power        int
	seed                uint64
	last                time.Duration
	scenarios           []string
}
