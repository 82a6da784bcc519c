// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
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
	module, origin := strings.Trim(info.Main.Version, "()"), "built without version control"
	if commit := settings["vcs.revision"]; commit != "" {
		origin = "commit " + commit
	}
	if settings["vcs.modified"] == "true" {
		origin += ", changed since"
	}
	return fmt.Sprintf("%s (%s), %s %s/%s", module, origin, info.GoVersion, runtime.GOOS, runtime.GOARCH)
}
