// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup"
)

// Messages of the kernel come whole; a parser survives those that do not.
func FuzzNetlinkMessages(f *testing.F) {
	attr := func(typ int, data []byte) []byte { return nl.NewRtAttr(typ, data).Serialize() }
	header := func(size int, attrs ...[]byte) []byte {
		out := make([]byte, size)
		for _, a := range attrs {
			out = append(out, a...)
		}
		return out
	}
	f.Add([]byte{})
	f.Add(header(16, attr(unix.IFLA_IFNAME, []byte("eth0\x00")), attr(unix.IFLA_LINKINFO, attr(unix.IFLA_INFO_KIND, []byte("veth")))))
	f.Add(header(16, attr(unix.IFLA_XDP, attr(unix.IFLA_XDP_SKB_PROG_ID, []byte{1, 0, 0, 0}))))
	f.Add(header(20, attr(nl.TCA_KIND, []byte("bpf\x00")), attr(nl.TCA_OPTIONS, attr(nl.TCA_BPF_NAME, []byte("x\x00")))))
	f.Add(header(20, attr(nl.TCA_CHAIN, []byte{1})))
	f.Add(append([]byte{unix.AF_INET, 24, 0, 0, 254, 2, 0, 1, 0, 0, 0, 0},
		header(0, attr(unix.RTA_DST, []byte{10, 0, 0, 0}), attr(unix.RTA_OIF, []byte{1, 0, 0, 0}), attr(unix.RTA_MULTIPATH, make([]byte, 8)))...))
	f.Add(append([]byte{unix.AF_INET6, 0, 0, 0, 254, 0, 0, 1, 0, 0, 0, 0},
		header(0, attr(nl.FRA_FWMARK, []byte{0, 2, 0, 0}), attr(nl.FRA_PROTOCOL, nil))...))
	f.Add(header(nl.SizeofXfrmUserpolicyInfo, attr(nl.XFRMA_MARK, make([]byte, 8))))
	f.Add(header(nl.SizeofXfrmUsersaInfo, attr(nl.XFRMA_MARK, make([]byte, 7))))
	f.Add(append([]byte{20, 0, 0, 0, 16, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4},
		[]byte{36, 0, 0, 0, 2, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}...))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, parse := range []func([]byte) error{
			cleanup.ParseLink, cleanup.ParseFilter, cleanup.ParseXDP,
			cleanup.ParseRoute, cleanup.ParseRule, cleanup.ParsePolicy, cleanup.ParseState, cleanup.ReadAnswer,
		} {
			if err := parse(b); err != nil && err.Error() == "" {
				t.Error("an error without words")
			}
		}
	})
}

func TestInterruptedDumpIsRepeated(t *testing.T) {
	whole := [][]byte{{1}}
	for _, interrupted := range []error{nl.ErrDumpInterrupted, unix.EINTR} {
		tries := 0
		got, err := cleanup.RetryDump(context.Background(), func() ([][]byte, error) {
			if tries++; tries < 5 {
				return [][]byte{{9}}, interrupted
			}
			return whole, nil
		})
		require.NoError(t, err)
		require.Equal(t, whole, got)
		require.Equal(t, 5, tries)

		tries = 0
		_, err = cleanup.RetryDump(context.Background(), func() ([][]byte, error) { tries++; return nil, interrupted })
		require.ErrorIs(t, err, interrupted)
		require.Equal(t, cleanup.DumpTries, tries)

		ctx, cancel := context.WithCancel(context.Background())
		_, err = cleanup.RetryDump(ctx, func() ([][]byte, error) { cancel(); return nil, interrupted })
		require.ErrorIs(t, err, context.Canceled)
	}
	other := errors.New("other")
	_, err := cleanup.RetryDump(context.Background(), func() ([][]byte, error) { return nil, other })
	require.ErrorIs(t, err, other)
}
