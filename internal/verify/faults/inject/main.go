// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command inject plays every fault at every call of nodeinit's commands, and prints their
// number and the violations. It needs Linux, root and strace.
//
//	go run ./internal/verify/faults/inject -scenario apply,uninstall
//	go run ./internal/verify/faults/inject -power 200
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	c := campaign{}
	flag.StringVar(&c.point, "point", "", "play only points whose name has this prefix, such as apply/fsync/3/EIO")
	flag.IntVar(&c.power, "power", 0, "play power cuts instead: this many for each command and file system")
	scenarios := flag.String("scenario", "leaf-config,leaf-host-paths,leaf-cgroup,leaf-sysctl,leaf-bpffs,leaf-cni,apply,update,uninstall,install-cni,build-config,cleanup", "scenarios to play")
	flag.Parse()
	c.scenarios = strings.Split(*scenarios, ",")
	if err := c.run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type campaign struct {
	point     string
	power     int
	scenarios []string
}
