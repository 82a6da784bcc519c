// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package remedy

import "golang.org/x/sys/unix"

// Missing returns the caps that are not in effect in the calling thread.
func Missing(caps ...Capability) []Capability {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData // capabilities 0 to 31, 32 to 63
	err := unix.Capget(&header, &data[0])
	var missing []Capability
	for _, c := range caps {
		if err != nil || data[c/32].Effective&(1<<(c%32)) == 0 {
			missing = append(missing, c)
		}
	}
	return missing
}
