// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package nlread_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/nlread"
	"github.com/slipway-dev/slipway/internal/testns"
)

// links calls each with the name of each link.
func links(ctx context.Context, begin func(), each func(name string) error) error {
	req := nl.NewNetlinkRequest(unix.RTM_GETLINK, 0)
	req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	return nlread.Dump(ctx, unix.NETLINK_ROUTE, req, unix.RTM_NEWLINK, begin, func(body []byte) error {
		name, err := nlread.Value(body[unix.SizeofIfInfomsg:], unix.IFLA_IFNAME)
		return errors.Join(err, each(unix.ByteSliceToString(name)))
	})
}

func addVeth(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name + "p"}))
}

func TestAnInterruptedDumpIsRepeated(t *testing.T) {
	testns.Enter(t, testns.Net)
	for i := range 100 { // more than two parts of a dump: the kernel makes one ahead
		addVeth(t, fmt.Sprintf("v%d", i))
	}
	begun, names := 0, map[string]bool{}
	require.NoError(t, links(t.Context(), func() { begun++; clear(names) }, func(name string) error {
		if begun == 1 && len(names) == 0 {
			addVeth(t, "new")
		}
		names[name] = true
		return nil
	}))
	require.Equal(t, 2, begun)
	require.Len(t, names, 1+2*101)

	begun = 0
	require.ErrorContains(t, links(t.Context(), func() { begun++; clear(names) }, func(name string) error {
		if len(names) == 0 {
			addVeth(t, fmt.Sprintf("again%d", begun))
		}
		names[name] = true
		return nil
	}), "netlink dump: interrupted by changes 32 times: ")

	stop := errors.New("stop")
	begun = 0
	require.ErrorIs(t, links(t.Context(), func() { begun++ }, func(string) error { return stop }), stop)
	require.Equal(t, 1, begun)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, links(ended, func() {}, func(string) error { return nil }), context.Canceled)
}

func TestAttributesThatAreNotWhole(t *testing.T) {
	one := nl.NewRtAttr(3|unix.NLA_F_NESTED, []byte("abc\x00")).Serialize()
	for text, b := range map[string][]byte{
		"":                                  append(one, 7, 0, 4, 0, 1, 2, 3), // the last without padding
		"netlink attribute of 9 bytes in 8": append(one, 9, 0, 4, 0, 1, 2, 3, 4),
		"netlink attribute of 3 bytes in 4": append(one, 3, 0, 4, 0),
	} {
		values, err := nlread.Values(b)
		require.Equal(t, []byte("abc\x00"), values[3])
		if text == "" {
			require.NoError(t, err)
			require.Equal(t, []byte{1, 2, 3}, values[4])
		} else {
			require.EqualError(t, err, text)
		}
	}
}
