// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command cleanupscale measures what it takes to remove many endpoint links
// (veth, clsact, tc filter, routes), in throw-away network namespaces:
// Slipway's cleanup beside deleting the links one by one and, where asked,
// beside Cilium's cleanup. It needs root.
//
//	go run ./internal/verify/bench/cleanupscale
//	go run ./internal/verify/bench/cleanupscale -links 1000 -runs 5 -cilium build
//
// While links are removed, a thread in another network namespace asks for a
// link of its own over and over, which needs the kernel's RTNL lock; the table
// shows how long it waited at most, and how long on the idle kernel.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == childFlag {
		exit(child(os.Args[2]))
		return
	}
	links := flag.String("links", "200,1000,5000", "numbers of endpoint links to measure with")
	runs := flag.Int("runs", 3, "how often each of them is measured; medians are shown")
	single := flag.Int("single-runs", 1, "how often deletion one by one is measured, which takes long")
	cilium := flag.String("cilium", "", `a cilium-dbg to measure as well, or "build" to build one from its module (minutes, once)`)
	tcx := flag.Bool("tcx", false, "attach the programs by tcx, not by tc filters")
	nice := flag.Int("nice", -10, "the priority of everything that is measured, so that other work on the machine counts less")
	flag.Parse()
	b := bench{runs: *runs, singleRuns: *single, tcx: *tcx, nice: *nice}
	exit(func() (err error) {
		if b.counts, err = numbers(*links); err != nil {
			return err
		}
		if b.cilium, err = ciliumBinary(*cilium); err != nil {
			return err
		}
		return b.run(os.Stdout)
	}())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "cleanupscale:", err)
		os.Exit(1)
	}
}

func numbers(list string) ([]int, error) {
	var out []int
	for _, s := range strings.Split(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-links %q: want positive numbers", list)
		}
		out = append(out, n)
	}
	return out, nil
}
