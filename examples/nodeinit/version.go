// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (a *app) printVersion(*cobra.Command, []string) error {
	_, err := fmt.Fprintln(a.stdout, "nodeinit version", version())
	return err
}

// version is what the Go command has written into the program: the module's version, in which
// the commit is, and whether that was changed; and Go's version.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "of unknown origin, " + runtime.Version()
	}
	return fmt.Sprintf("%s, %s %s/%s", info.Main.Version, info.GoVersion, runtime.GOOS, runtime.GOARCH)
}
