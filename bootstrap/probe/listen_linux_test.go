// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package probe_test

import (
	"context"
	"net"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/probe"
)

// A node without IPv6 is not required to have it.
func TestRDY2_ListensOnLoopbackOnly(t *testing.T) {
	n := bootstraptest.NewNode(t)
	listen := func() (addresses []string) {
		require.NoError(t, n.Do(t.Context(), func(context.Context) error {
			listeners, err := probe.Listen()
			for _, l := range listeners {
				addresses = append(addresses, l.Addr().String())
				require.True(t, l.Addr().(*net.TCPAddr).IP.IsLoopback())
				err = l.Close()
			}
			return err
		}))
		return addresses
	}
	require.Equal(t, []string{"127.0.0.1:9879", "[::1]:9879"}, listen())
	require.NoError(t, n.Do(t.Context(), func(context.Context) error {
		return os.WriteFile("/proc/sys/net/ipv6/conf/lo/disable_ipv6", []byte("1"), 0)
	}))
	require.True(t, slices.Equal([]string{"127.0.0.1:9879"}, listen()))
}
