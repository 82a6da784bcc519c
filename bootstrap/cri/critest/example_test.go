// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package critest_test

import (
	"fmt"

	"github.com/slipway-dev/slipway/bootstrap/cri/critest"
)

func ExampleContainerd() {
	info := critest.Containerd(nil, "/etc/cni/net.d", "/opt/cni/bin")()
	fmt.Println(info["cniconfig"])
	// Output: {"Networks":[],"PluginConfDir":"/etc/cni/net.d","PluginDirs":["/opt/cni/bin"],"PluginMaxConfNum":1,"Prefix":"eth"}
}
