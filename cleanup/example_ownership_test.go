// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"fmt"

	"github.com/slipway-dev/slipway/cleanup"
)

// Describe your own agent's leftovers with full names. A rule that could match other owners'
// objects is refused before anything is listed.
func ExampleOwnership() {
	own := cleanup.Ownership{
		Agent:     "acme",
		Programs:  []string{"acme_from_pod", "acme_to_pod"},
		Filters:   []string{"acme_from_pod-{link}"},
		Pins:      []string{"acme"},
		Links:     []cleanup.LinkRule{{Name: "acme[0-9a-f]{8}", Kind: "veth"}},
		Files:     []string{"/etc/cni/net.d/05-acme.conflist"},
		SetAside:  []string{"/etc/cni/net.d/*.acme_bak"},
		StateDirs: []string{"/var/run/acme"},
		// A running agent stops the cleanup.
		PidFiles:    []string{"/var/run/acme/agent.pid"},
		Executables: []string{"acme-agent"},
		Sockets:     []string{"/var/run/acme/agent.sock"},
	}
	fmt.Println(own.Validate())

	own.ChainPrefixes = []string{"KUBE-"}
	fmt.Println(own.Validate())
	// Output:
	// <nil>
	// cleanup: ownership: chainPrefixes: "KUBE-" would match the chain KUBE-*, which is kube-proxy's (see kubernetes: pkg/proxy/iptables/proxier.go, pkg/kubelet/kubelet_network_linux.go): name the agent's own more exactly, give its name as agent, now "acme", or name each single thing in exceptions
}
