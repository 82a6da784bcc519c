// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// execute makes this process another program, without the capabilities.
func execute(path string, args, env []string, drop []int) error {
	runtime.LockOSThread() // for good: capabilities are a thread's, and the others end
	if err := dropCapabilities(drop); err != nil {
		return err
	}
	return syscall.Exec(path, args, env) // also puts back the limit on open files, which Go raises
}

// dropCapabilities takes them from the bounding set first, since root gets all of it when
// it executes a program, and then from those that the thread has.
func dropCapabilities(drop []int) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData // capabilities 0 to 31, 32 to 63
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("read the capabilities: %w", err)
	}
	for _, number := range drop {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(number), 0, 0, 0)
		if err != nil && !errors.Is(err, unix.EINVAL) { // that the kernel does not know
			return fmt.Errorf("drop CAP_%s: %w (needs CAP_SETPCAP)", capabilityNames[number], err)
		}
		set, bit := &data[number/32], uint32(1)<<(number%32)
		set.Effective, set.Permitted, set.Inheritable = set.Effective&^bit, set.Permitted&^bit, set.Inheritable&^bit
	}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}
