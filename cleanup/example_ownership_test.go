// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"fmt"

	"github.com/slipway-dev/slipway/cleanup"
)

// What an agent of one's own leaves on a node is said in full names. What could be
// somebody else's is refused before anything is looked for.
func ExampleOwnership() {
	own := cleanup.Ownership{
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

	own.Links[0].Name = "(acme|eth).*"
	fmt.Println(own.Validate() != nil)
	// Output:
	// <nil>
	// true
}
