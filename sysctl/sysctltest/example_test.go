// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctltest_test

import (
	"context"
	"fmt"
	"syscall"

	"github.com/slipway-dev/slipway/sysctl"
	"github.com/slipway-dev/slipway/sysctl/sysctltest"
)

func Example() {
	fake := sysctltest.New("eth0")
	fake.Fail("net.ipv6.conf.all.forwarding", syscall.EPERM)
	err := sysctl.Settings{Values: sysctl.Forwarding(), Kernel: fake.Kernel()}.Apply(context.Background())
	fmt.Println(err != nil, fake.Values()["net.ipv4.conf.eth0.forwarding"], fake.Values()["net.ipv6.conf.eth0.forwarding"])
	fmt.Println(fake.Writes())
	// Output:
	// true 1 0
	// [net.ipv4.ip_forward = 1 net.ipv6.conf.all.forwarding = 1]
}
