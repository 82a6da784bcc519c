// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package testns

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
)

type node struct{}

func unsupported() error {
	return fmt.Errorf("%s has no namespaces: %w", runtime.GOOS, errors.ErrUnsupported)
}

func (*node) start(context.Context, NodeOptions) error              { return unsupported() }
func (*node) proc() string                                          { return "" }
func (*node) do(context.Context, func(context.Context) error) error { return unsupported() }
func (*node) startCommand(*exec.Cmd) error                          { return unsupported() }
func (*node) kill() error                                           { return nil }
func (*node) close() error                                          { return nil }
