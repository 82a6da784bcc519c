// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/sysctl"
)

// Leaves run on a node in memory, without root. One kernel call fails, and succeeds in the
// next run.
func ExampleKernel() {
	dir, err := os.MkdirTemp("", "node-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	kernel := bootstraptest.NewKernel("eth0")
	bpf, cgroups := filepath.Join(dir, "bpf"), filepath.Join(dir, "cgroup")
	apply := func() error {
		ctx := context.Background()
		return errors.Join(
			cgroup.Mount{Path: cgroups, Kernel: kernel}.Apply(ctx),
			sysctl.Kernel{Files: kernel}.Set(sysctl.Forwarding()...),
			bpffs.Mount{Path: bpf, Kernel: kernel}.Apply(ctx),
		)
	}

	kernel.Fail = func(op, path string) error {
		if op == "write" && path == "/proc/sys/net/ipv4/ip_forward" {
			return syscall.EIO
		}
		return nil
	}
	err = apply()
	fmt.Println(errors.Is(err, syscall.EIO), kernel.Mounts(cgroups), kernel.Mounts(bpf))

	kernel.Fail = nil
	err = apply()
	fmt.Println(err, kernel.Mounts(cgroups), kernel.Mounts(bpf), kernel.Values()["net.ipv4.conf.eth0.forwarding"])
	// Output:
	// true [cgroup2] [bpf]
	// <nil> [cgroup2] [bpf] 1
}
