// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package rtnl_test

import (
	"testing"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup/internal/rtnl"
)

// The kernel's messages are well-formed; a parser survives others too.
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
		header(0, attr(unix.FRA_FWMARK, []byte{0, 2, 0, 0}), attr(unix.FRA_PROTOCOL, nil))...))
	f.Add(header(nl.SizeofXfrmUserpolicyInfo, attr(nl.XFRMA_MARK, make([]byte, 8))))
	f.Add(header(nl.SizeofXfrmUsersaInfo, attr(nl.XFRMA_MARK, make([]byte, 7))))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, parse := range []func([]byte) error{
			rtnl.ParseLink, rtnl.ParseFilter, rtnl.ParseQdisc,
			rtnl.ParseRoute, rtnl.ParseRule, rtnl.ParsePolicy, rtnl.ParseState,
		} {
			if err := parse(b); err != nil && err.Error() == "" {
				t.Error("an error without words")
			}
		}
	})
}
