// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package realcri provides real container runtimes for tests in which a fake one would prove
// nothing; make cri runs this package's own tests.
//
// A containerd is either built from its Go module, in 1.5 to 2 CPU-minutes the first time, or
// taken from the machine's Debian, downloaded and unpacked but not installed: the machine may
// run another one. They are kept in the directory slipway/realcri of os.UserCacheDir.
package realcri

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/internal/verify/process"
	"github.com/slipway-dev/slipway/internal/verify/programs"
)

// Debian stands for the version in the machine's Debian.
const Debian = "debian"

// Versions are the tested versions of containerd: the last of each line in use, and Debian's.
var Versions = []string{"1.6.38", "1.7.27", "2.1.4", Debian}

// commands are containerd's programs for running pods, and ctr.
var commands = []string{"containerd", "containerd-shim-runc-v2", "ctr"}

// Root returns a directory with containerd, its shim and ctr in usr/bin, and the other files of
// Debian's package. If it does not exist, it is made, and a line is written to log.
func Root(ctx context.Context, log io.Writer, version string) (string, error) {
	if version == Debian {
		return Unpack(ctx, log, Debian, "containerd")
	}
	return root(ctx, log, "containerd-"+version, func(dir string) error {
		fmt.Fprintf(log, "building containerd %s\n", version)
		return build(ctx, log, dir, version)
	})
}

// Unpack returns a directory with the content of the packages, in the version of the machine's
// Debian. If no directory of this name exists, they are downloaded, and a line is written to
// log.
func Unpack(ctx context.Context, log io.Writer, name string, packages ...string) (string, error) {
	return root(ctx, log, name, func(dir string) error {
		fmt.Fprintf(log, "downloading Debian's %s\n", strings.Join(packages, ", "))
		list := strings.Join(packages, " ")
		cmd := exec.CommandContext(ctx, "sh", "-euc", "get() { apt-get download -qq -o APT::Sandbox::User=root "+list+
			"; }; get || { apt-get update -qq; get; }; for package in *.deb; do dpkg-deb -x $package root; done")
		cmd.Dir = dir
		_, err := process.Output(cmd, nil)
		return err
	})
}

// root returns the directory dir/root, which fill has filled.
func root(ctx context.Context, log io.Writer, name string, fill func(dir string) error) (string, error) {
	dir, err := programs.Kept(ctx, log, "realcri", name, fill)
	return filepath.Join(dir, "root"), err
}

func build(ctx context.Context, log io.Writer, dir, version string) error {
	module := "github.com/containerd/containerd"
	if strings.HasPrefix(version, "2.") {
		module += "/v2"
	}
	build := []string{"build", "-mod=mod", "-trimpath", "-ldflags=-s -w", "-tags=no_btrfs,no_devmapper,no_zfs,no_aufs", "-o", "root/usr/bin/"}
	for _, name := range commands {
		build = append(build, module+"/cmd/"+name)
	}
	if err := programs.Require(ctx, log, dir, module+"@v"+version); err != nil {
		return err
	}
	return programs.Go(ctx, log, dir, nil, build...)
}
