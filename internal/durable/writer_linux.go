// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package durable

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// writerTimeout is far longer than a program takes from fork to exec.
const writerTimeout = time.Second

// awaitNoWriter returns when no process has the file of f, which is open for reading,
// open for writing. A handle that this process has closed can live on for a moment in a
// program that is being started: it is closed only late in execve(2), after the parent
// has gone on. Until then, executing the file fails with ETXTBSY. The kernel grants a
// read lease (fcntl(2), F_SETLEASE) only if there is no writer; if it grants no leases at
// all, awaitNoWriter does not wait.
func awaitNoWriter(f *os.File) {
	for deadline := time.Now().Add(writerTimeout); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
		if err == nil {
			_, _ = unix.FcntlInt(f.Fd(), unix.F_SETOWN, 0) // no SIGIO when another process waits
			_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
		}
		if !errors.Is(err, unix.EAGAIN) {
			return
		}
	}
}
