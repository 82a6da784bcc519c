// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"fmt"

	"github.com/slipway-dev/slipway/cleanup"
)

// A node keeps its CNI configurations in an unusual place.
func ExampleOwnership_Moved() {
	own := cleanup.Cilium().Moved("/etc/cni/net.d", "/etc/kubernetes/cni/net.d")
	fmt.Println(own.Files[0])
	fmt.Println(own.SetAside[0])
	// Output:
	// /etc/kubernetes/cni/net.d/05-cilium.conflist
	// /etc/kubernetes/cni/net.d/*.cilium_bak
}
