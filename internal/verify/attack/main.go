// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command attack runs each operation that touches a path beside an attacker, and counts
// how often he succeeds.
//
//	go run ./internal/verify/attack
//	go run ./internal/verify/attack -n 100000 -target 'record|mount'
//
// The attacker is an unprivileged process in a mount namespace of its own, as in a pod.
// He owns the directory in which the operation works (an emptyDir, a directory of plugins),
// and there he exchanges two names (renameat2(2), RENAME_EXCHANGE) over and over, at
// random moments: a file and a link to a file of root's outside, a directory and a link
// to a directory of root's, or a directory and another one that root has made in the
// attacker's directory.
//
// After each attempt, nothing may have changed outside or in that other directory of
// root's, nothing may be mounted except in the attacker's directory, and no file that he
// can read, and no record, may hold content that only root may read. For each operation a
// naive version runs too, which must lose: that shows the attacker's strength.
//
// All files lie on a tmpfs in a throw-away mount namespace. It needs root and Linux.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
)

func main() {
	n := flag.Int("n", 2000, "how often each operation is tried; a quarter as often where that takes long")
	pattern := flag.String("target", "", "try only the operations whose names match this regular expression")
	mode := flag.String("as", "", "for the program's own use: the role of a child process")
	flag.Parse()
	if err := play(*mode, *n, *pattern); err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		os.Exit(1)
	}
}

func play(mode string, n int, pattern string) error {
	only, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	switch mode {
	case "":
		return isolate()
	case "attacker":
		return exchange(flag.Args())
	}
	return attack(flag.Arg(0), n, only)
}
