// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// protected is a name that only the ownerships of its owners may match.
type protected struct {
	owners []string // agents; none: the node, whose property cannot be owned
	kind   string
	name   string // with * any rest; of links and bridges: a regular expression
	source string
}

// has reports whether an agent is one of the owners.
func (p protected) has(agent string) bool { return slices.Contains(p.owners, agent) }

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
	kindCNIFile    = "CNI file"    // in a directory for CNI
	kindSysctlFile = "sysctl file" // in sysctl.d
	kindNetwork    = "network"     // of host-local, in /var/lib/cni/networks
	kindDir        = "directory"   // in run, var/lib or var/log
	kindPath       = "path"
)

//go:embed protected.txt
var protectedTable string

// protectedNames reads the table, by kinds.
var protectedNames = sync.OnceValue(func() map[string][]protected {
	all := map[string][]protected{}
	for line := range strings.Lines(protectedTable) {
		columns := strings.Split(strings.TrimSpace(line), "\t")
		if len(columns) != 4 {
			continue
		}
		owners, kind := strings.Fields(strings.Trim(columns[0], "-")), columns[1]
		for _, name := range strings.Fields(columns[2]) {
			all[kind] = append(all[kind], protected{owners, kind, name, columns[3]})
		}
	}
	return all
})

// isProtected reports whether a name of a kind is protected so.
func isProtected(kind string, so func(protected) bool) bool {
	return slices.ContainsFunc(protectedNames()[kind], so)
}

// sharedPins are the directories of a BPF file system that iproute2 makes for
// everybody.
func sharedPins() []string {
	return []string{"tc", "tc/globals", "ip", "ip/globals", "xdp", "xdp/globals"}
}

// nftNameBytes is how long a name of nftables can be (NFT_NAME_MAXLEN - 1).
const nftNameBytes = 255
