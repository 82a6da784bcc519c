// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostlocal

import (
	"time"

	"golang.org/x/sys/unix"
)

// clockOfBoot returns the time that the clock would show if it had not been set since the
// kernel made /dev/null (devtmpfs), a second after it started. Zero if that is unknown.
func clockOfBoot() time.Time {
	var made unix.Stat_t
	var up unix.Timespec
	if unix.Stat("/dev/null", &made) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) != nil {
		return time.Time{}
	}
	return time.Unix(made.Mtim.Unix()).Add(time.Duration(up.Nano()))
}
