// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"os"
	"os/signal"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The kernel has delivered the signal, but the runtime of Go has not passed it on.
func TestPLAN13_ASignalInTheMomentBeforeTheCommandIsNotLost(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range 100 {
		h := handover{path: "/no-such-command", told: make(chan os.Signal, 1)}
		signal.Notify(h.told, toEnd()...)
		require.NoError(t, unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGTERM))
		require.EqualError(t, h.become(), "/no-such-command is not run: asked to end")
	}
}
