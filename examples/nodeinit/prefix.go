// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"os"
	"path/filepath"
	"strings"
)

// below returns where path is on a host whose root is mounted at prefix. Links on the way
// lead to where they lead on the host: an absolute one starts at prefix, and none climbs
// above it. A missing path is left to the program that makes it.
func below(prefix, path string) string {
	const most = 40 // links, as in the kernel
	at, rest := "/", strings.Split(path, "/")
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0]) // a ".." stays in /
		rest = rest[1:]
		target, err := os.Readlink(filepath.Join(prefix, next))
		if err != nil { // no link
			at = next
			continue
		}
		if links++; links > most {
			return filepath.Join(prefix, path) // opening it returns the error
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return filepath.Join(prefix, at)
}
