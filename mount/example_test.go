// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package mount_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/mount"
)

// printing is a kernel that prints what is mounted.
type printing struct{ mount.Mounter }

func (p printing) Mount(source, target, fstype, options string) error {
	fmt.Println(fstype, "on", filepath.Base(target), "with", options)
	return p.Mounter.Mount(source, target, fstype, options)
}

func ExampleMounter() {
	dir, err := os.MkdirTemp("", "node-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	kernel := printing{&bootstraptest.Kernel{}}
	fmt.Println(bpffs.Mount{Path: filepath.Join(dir, "bpf"), Kernel: kernel}.Apply(context.Background()))
	fmt.Println(cgroup.Mount{Path: filepath.Join(dir, "cgroupv2"), Kernel: kernel}.Apply(context.Background()))
	// Output:
	// bpf on bpf with nosuid,nodev,noexec,mode=700
	// <nil>
	// cgroup2 on cgroupv2 with nosuid,nodev,noexec
	// <nil>
}
