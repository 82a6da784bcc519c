// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command attack runs each operation that touches a path beside an attacker, and counts
// how often he succeeds.
//
//	go run ./internal/verify/attack
//	go run ./internal/verify/attack -n 100000 -target 'journal|mount'
//
// The attacker is an unprivileged process in a mount namespace of its own, as in a pod.
// He owns the directory in which the operation works (an emptyDir, a folder of plugins),
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
// The second kind of attacker exchanges nothing, but lies about his identity. As a user,
// he runs a set-user-id program through a link named kubelet or cilium-agent, hands it a
// lock, and locks all files that he may open. As root in a pod, he runs a program named
// kubelet. Both kubelets name a runtime of his, whose answers are well-formed: they name
// folders to write to, and destructive keys. No operation may believe him, or be held up
// by him for two seconds. A column counts his exchanges, or his lies.
//
// All files lie on a tmpfs in a throw-away mount namespace, or on a throw-away node. It
// needs root and Linux.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
)

func main() {
	if part := os.Getenv(standIn); part != "" {
		if err := playStandIn(part); err != nil {
			os.Exit(1)
		}
		return
	}
	n := flag.Int("n", 2000, "how often each operation is tried; a quarter as often where that takes long, and a twentieth on a node")
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
	case "liar":
		return lieUntilEnd(flag.Arg(0))
	}
	return attack(flag.Arg(0), n, only)
}
