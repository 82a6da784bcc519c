// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	_ "embed"
	"strings"
	"sync"
)

// protected are names of one kind that only the ownerships of their owners may match.
type protected struct {
	owners string // agents, separated by spaces; empty: the node, whose property cannot be owned
	kind   string
	names  []string // with * any rest; of links and bridges: regular expressions
	source string
}

// The kinds of protected names. A name covers everything below it, as a path does.
const (
	kindAnyLink    = "link"
	kindBridge     = "bridge"
	kindChain      = "chain"
	kindComment    = "comment of iptables"
	kindSet        = "ipset"
	kindTable      = "nftables table"
	kindProgram    = "program"
	kindBPFPin     = "pin"
	kindCNIFile    = "CNI file"    // in a folder for CNI
	kindSysctlFile = "sysctl file" // in sysctl.d
	kindNetwork    = "network"     // of host-local, in /var/lib/cni/networks
	kindFolder     = "folder"      // in run, var/lib or var/log
	kindPath       = "path"
)

//go:embed protected.txt
var protectedTable string

// protectedNames reads the table.
var protectedNames = sync.OnceValue(func() (list []protected) {
	for line := range strings.Lines(protectedTable) {
		if columns := strings.Split(strings.TrimSpace(line), "\t"); len(columns) == 4 {
			list = append(list, protected{strings.Trim(columns[0], "-"), columns[1], strings.Fields(columns[2]), columns[3]})
		}
	}
	return list
})

// sharedPins are the directories of a BPF file system that iproute2 makes for
// everybody.
func sharedPins() []string {
	return []string{"tc", "tc/globals", "ip", "ip/globals", "xdp", "xdp/globals"}
}

// nftNameBytes is how long a name of nftables can be (NFT_NAME_MAXLEN - 1).
const nftNameBytes = 255
