// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is the information that the Go command has written into the program: the
// module's version, the commit, whether that was changed, and Go's version.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "of unknown origin, " + runtime.Version()
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	module, commit := info.Main.Version, settings["vcs.revision"]
	if commit == "" {
		commit = "unknown"
	}
	if settings["vcs.modified"] == "true" {
		commit += ", changed since"
	}
	return fmt.Sprintf("%s (commit %s), %s %s/%s", module, commit, info.GoVersion, runtime.GOOS, runtime.GOARCH)
}
