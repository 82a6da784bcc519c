// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/remedy"
)

// setMark sets SO_MARK of socket(7).
func setMark(fd uintptr, mark uint32) error {
	err := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, int(mark))
	if err != nil {
		err = remedy.Capabilities(err, "in the user namespace of the network namespace", remedy.NetAdmin)
		return fmt.Errorf("mark the packets of a socket: %w", err)
	}
	return nil
}
