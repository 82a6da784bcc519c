// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// bootID names the running boot, as in random(4).
func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("boot id: %w", err)
	}
	return strings.TrimSpace(string(id)), nil
}

// flock reports false if another process keeps the file locked for longer than writing a
// line takes. On a file system without locks it excludes no process.
func flock(f *os.File) bool {
	for range 500 {
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != unix.EWOULDBLOCK {
			return true
		}
		time.Sleep(2 * time.Millisecond)
	}
	return false
}

// funlock gives the lock back, also that of a child that has just been forked and has f too.
func funlock(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN) }
