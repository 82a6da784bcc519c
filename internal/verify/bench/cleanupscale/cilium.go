// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ciliumVersion is the release to measure against; it builds from its module.
const ciliumVersion = "v1.18.3"

// ciliumBinary returns the path of a cilium-dbg: the one given, one that is
// built and kept in the user's cache where asked, or none.
func ciliumBinary(flag string) (string, error) {
	if flag != "build" {
		return flag, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "slipway", "bench", "cilium-"+ciliumVersion)
	binary := filepath.Join(dir, "cilium-dbg")
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	fmt.Fprintf(os.Stderr, "cleanupscale: building %s\n", binary)
	module, err := moduleDir()
	if err != nil {
		return "", err
	}
	// The module cache is read-only: go.mod and go.sum are written beside.
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return "", err
		}
	}
	build := exec.Command("nice", "-n", "19", "go", "build", "-mod=mod", "-modfile="+filepath.Join(dir, "go.mod"),
		"-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", binary, "./cilium-dbg")
	build.Dir = module
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build cilium %s: %w: %s", ciliumVersion, err, lastLines(string(out)))
	}
	return binary, nil
}

// moduleDir returns where the module's source is.
func moduleDir() (string, error) {
	out, err := exec.Command("go", "mod", "download", "-json", "github.com/cilium/cilium@"+ciliumVersion).Output()
	if err != nil {
		return "", fmt.Errorf("download cilium %s: %w", ciliumVersion, err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return "", fmt.Errorf("download cilium %s: %w", ciliumVersion, err)
	}
	return module.Dir, nil
}

func lastLines(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}
