// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package gate

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/remedy"
)

// family is IPv4's or IPv6's side of netfilter.
type family struct {
	name   string
	nft    uint8  // of nf_tables
	socket int    // whose options show legacy iptables
	level  int    // of these options
	tables string // the file that lists the legacy tables
	offset int    // of ipt_entry.target_offset, behind the addresses and the cache
}

func families() []family {
	return []family{
		{"IPv4", unix.NFPROTO_IPV4, unix.AF_INET, unix.IPPROTO_IP, "/proc/thread-self/net/ip_tables_names", 88},
		{"IPv6", unix.NFPROTO_IPV6, unix.AF_INET6, unix.IPPROTO_IPV6, "/proc/thread-self/net/ip6_tables_names", 140},
	}
}

// kubeProxy reports whether one of the chains is there.
func kubeProxy() (bool, error) {
	for _, f := range families() {
		for _, look := range []func(family) (bool, error){inNFTables, inLegacyTables} {
			found, err := look(f)
			if err != nil {
				err = remedy.Capabilities(err, "in the user namespace of the network namespace", remedy.NetAdmin)
				return false, fmt.Errorf("look for the chains of kube-proxy for %s: %w", f.name, err)
			}
			if found {
				return true, nil
			}
		}
	}
	return false, nil
}
