// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package durable

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// writerTimeout is far more than a program takes from fork to exec.
const writerTimeout = time.Second

// awaitNoWriter returns when nobody has the file of f, which is open for
// reading, open for writing. A handle that this process has closed can live on
// for a moment in a program that is being started: it is closed only late in
// execve(2), after the parent has gone on. Until then, to execute the file is
// ETXTBSY. The kernel grants a read lease (fcntl(2), F_SETLEASE) only where
// there is no writer; where it grants none at all, nothing is waited for.
func awaitNoWriter(f *os.File) {
	for deadline := time.Now().Add(writerTimeout); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
		if err == nil {
			_, _ = unix.FcntlInt(f.Fd(), unix.F_SETOWN, 0) // no SIGIO when somebody waits
			_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
		}
		if !errors.Is(err, unix.EAGAIN) {
			return
		}
	}
}
