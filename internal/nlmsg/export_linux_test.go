// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package nlmsg

import "syscall"

// Answer reads the kernel's answer to the request with this number. It reports whether
// the answer is complete.
func Answer(sent []byte, sequence uint32, reply uint16, each func(body []byte) error) (whole bool, err error) {
	messages, err := syscall.ParseNetlinkMessage(sent)
	a := answer{sequence: sequence, reply: reply, each: each}
	for _, m := range messages {
		if whole, err = a.take(m); whole {
			break
		}
	}
	return whole, err
}
