// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package netfilter

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/input"
)

// Family is netfilter for IPv4 or IPv6.
type Family struct {
	Name    string // as nft(8) calls it: "ip", "ip6"
	Version string // "IPv4", "IPv6"
	Tool    string // prefix of the names of the iptables tools

	protocol uint8  // of nf_tables
	tables   string // the file in netDir that lists the legacy tables
	socket   int    // whose options show legacy tables
	level    int    // of these options
	target   int    // where struct ipt_entry has target_offset: behind the addresses and the cache
}

// netDir is where the kernel describes the thread's network namespace.
const netDir = "/proc/thread-self/net"

// Families returns both.
func Families() []Family {
	return []Family{
		{"ip", "IPv4", "iptables", unix.NFPROTO_IPV4, "ip_tables_names", unix.AF_INET, unix.IPPROTO_IP, 88},
		{"ip6", "IPv6", "ip6tables", unix.NFPROTO_IPV6, "ip6_tables_names", unix.AF_INET6, unix.IPPROTO_IPV6, 140},
	}
}

// Tables returns the names of the tables of iptables, in the order in which
// packets meet them.
func Tables() []string { return []string{"raw", "mangle", "nat", "filter", "security"} }

// LegacyTables returns the names of the tables of legacy iptables that exist in
// the thread's network namespace. The kernel makes a table at the first request for it,
// so only ask for one that is listed here.
func (f Family) LegacyTables(ctx context.Context) ([]string, error) {
	text, err := input.ReadFile(ctx, netDir+"/"+f.tables, 4<<10)
	if errors.Is(err, fs.ErrNotExist) {
		// The kernel has no such tables, or no IPv6; or this /proc does not show the
		// thread, and so cannot tell.
		_, err = os.Stat(netDir)
	}
	return strings.Fields(string(text)), err
}
