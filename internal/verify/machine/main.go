// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command machine prints the state that tests must not change on the machine that they run on:
// mounts, links, sysctls and the files of /etc and /opt, one per line. It runs before and after
// the tests, and the outputs are compared.
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/snapshot"
)

func main() {
	s := snapshot.Snapshot{}
	if err := errors.Join(s.Machine(), s.Files("/etc", "/opt"), s.Values("net")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s.DropMoving()
	for _, object := range slices.Sorted(maps.Keys(s)) {
		fmt.Println(object, strings.ReplaceAll(s[object], "\n", " "))
	}
}
