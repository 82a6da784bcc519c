// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"context"
	"fmt"
	"log"

	"github.com/slipway-dev/slipway/cleanup"
)

// The AWS VPC CNI was replaced, not chained: its chains are of no use now.
func ExampleAWSLeftovers() {
	c := cleanup.Leftovers{Ownership: cleanup.AWSLeftovers(), Scope: cleanup.AllState}
	if err := c.Apply(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// A node that keeps its CNI configurations at a place of its own.
func ExampleOwnership_Moved() {
	own := cleanup.Cilium().Moved("/etc/cni/net.d", "/etc/kubernetes/cni/net.d")
	fmt.Println(own.Files[0])
	fmt.Println(own.SetAside[0])
	// Output:
	// /etc/kubernetes/cni/net.d/05-cilium.conflist
	// /etc/kubernetes/cni/net.d/*.cilium_bak
}
