// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// lockMain keeps main, and with it all that nodeinit does in turn, on one thread.
const lockMain = `package main

import "runtime"

func init() { runtime.LockOSThread() }
`

// Build compiles nodeinit into dir, for faults that are counted by thread.
func Build(ctx context.Context, dir string) (binary string, err error) {
	mod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(mod)))
	added, overlay := filepath.Join(dir, "lockmain.go"), filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]any{
		"Replace": map[string]string{filepath.Join(root, "examples", "nodeinit", "lockmain.go"): added},
	})
	if err == nil {
		err = errors.Join(os.WriteFile(added, []byte(lockMain), 0o644), os.WriteFile(overlay, text, 0o644))
	}
	if err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "nodeinit")
	build := exec.CommandContext(ctx, "go", "build", "-C", root, "-overlay", overlay, "-trimpath", "-o", binary, "./examples/nodeinit")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	var stderr bytes.Buffer
	build.Stderr = &stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("build nodeinit: %w: %s", err, stderr.Bytes())
	}
	return binary, nil
}
