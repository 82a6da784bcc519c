// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package realcri has real container runtimes for tests that a fake one would prove
// nothing to; make cri runs those of this package.
//
// A containerd is built from its Go module, 1.5 to 2 CPU-minutes each the first
// time, or is the one of the machine's Debian, which is downloaded and unpacked but
// not installed: either may be on a machine that has another. They are kept in the
// directory slipway/realcri of os.UserCacheDir.
package realcri

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/internal/verify/process"
	"github.com/slipway-dev/slipway/internal/verify/programs"
)

// Debian stands for the version that the machine's Debian has.
const Debian = "debian"

// Versions are those of containerd that are tested: the last of each line that is
// in use, and Debian's.
var Versions = []string{"1.6.38", "1.7.27", "2.1.4", Debian}

// commands of containerd are those that run pods, and ctr.
var commands = []string{"containerd", "containerd-shim-runc-v2", "ctr"}

// Root returns a directory with containerd, its shim and ctr in usr/bin, and with
// what else Debian's package has. It is made if it is not there; log gets a line
// then.
func Root(ctx context.Context, log io.Writer, version string) (string, error) {
	if version == Debian {
		return Unpack(ctx, log, Debian, "containerd")
	}
	return root(ctx, log, "containerd-"+version, func(dir string) error {
		fmt.Fprintf(log, "building containerd %s\n", version)
		return build(ctx, log, dir, version)
	})
}

// Unpack returns a directory with the content of the packages, of the version
// that the machine's Debian has. They are downloaded if it is not there, under
// the name; log gets a line then.
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

// root returns what fill has made in dir/root.
func root(ctx context.Context, log io.Writer, name string, fill func(dir string) error) (string, error) {
	dir, err := programs.Kept(ctx, log, "realcri", name, fill)
	return filepath.Join(dir, "root"), err
}

// build builds the programs from a module that requires theirs: they cannot be
// installed by version, since their own go.mod replaces others.
func build(ctx context.Context, log io.Writer, dir, version string) error {
	module := "github.com/containerd/containerd"
	if strings.HasPrefix(version, "2.") {
		module += "/v2"
	}
	source := "//go:build tools\n\npackage main\n\n"
	build := []string{"build", "-mod=mod", "-trimpath", "-ldflags=-s -w", "-tags=no_btrfs,no_devmapper,no_zfs,no_aufs", "-o", "root/usr/bin/"}
	for _, name := range commands {
		source += fmt.Sprintf("import _ %q\n", module+"/cmd/"+name)
		build = append(build, module+"/cmd/"+name)
	}
	if err := os.WriteFile(filepath.Join(dir, "tools.go"), []byte(source), 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{{"mod", "init", "containerd"}, {"get", module + "@v" + version}, build} {
		if err := programs.Go(ctx, log, dir, nil, args...); err != nil {
			return err
		}
	}
	return nil
}
