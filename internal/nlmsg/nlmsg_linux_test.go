// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package nlmsg_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/nlmsg"
)

func TestInterruptedDumpIsRepeated(t *testing.T) {
	tries := 0
	require.NoError(t, nlmsg.Retry(context.Background(), func() error {
		if tries++; tries < 5 {
			return unix.EINTR
		}
		return nil
	}))
	require.Equal(t, 5, tries)

	tries = 0
	require.ErrorIs(t, nlmsg.Retry(context.Background(), func() error { tries++; return unix.EINTR }), unix.EINTR)
	require.Equal(t, nlmsg.DumpTries, tries)

	ctx, cancel := context.WithCancel(context.Background())
	require.ErrorIs(t, nlmsg.Retry(ctx, func() error { cancel(); return unix.EINTR }), context.Canceled)

	other := errors.New("other")
	require.ErrorIs(t, nlmsg.Retry(context.Background(), func() error { return other }), other)
}
