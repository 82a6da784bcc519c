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
	whole := [][]byte{{1}}
	tries := 0
	got, err := nlmsg.Retry(context.Background(), func() ([][]byte, error) {
		if tries++; tries < 5 {
			return [][]byte{{9}}, unix.EINTR
		}
		return whole, nil
	})
	require.NoError(t, err)
	require.Equal(t, whole, got)
	require.Equal(t, 5, tries)

	tries = 0
	_, err = nlmsg.Retry(context.Background(), func() ([][]byte, error) { tries++; return nil, unix.EINTR })
	require.ErrorIs(t, err, unix.EINTR)
	require.Equal(t, nlmsg.DumpTries, tries)

	ctx, cancel := context.WithCancel(context.Background())
	_, err = nlmsg.Retry(ctx, func() ([][]byte, error) { cancel(); return nil, unix.EINTR })
	require.ErrorIs(t, err, context.Canceled)

	other := errors.New("other")
	_, err = nlmsg.Retry(context.Background(), func() ([][]byte, error) { return nil, other })
	require.ErrorIs(t, err, other)
}
