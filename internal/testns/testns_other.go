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

// Root skips the test: there are no namespaces here.
func Root(t TB) {
	t.Helper()
	Skip(t, "needs Linux")
}

// Enter skips the test: there are no namespaces here.
func Enter(t TB, _ Namespace) {
	t.Helper()
	Root(t)
}

// Process skips the test: there are no namespaces here.
func Process(t TB, _ Namespace, _ string) (procDir string) {
	t.Helper()
	Root(t)
	return ""
}

// TempDir returns a temporary directory that is removed with the test.
func TempDir(t TB) string {
	t.Helper()
	return t.TempDir()
}

// Node cannot be: there are no namespaces here.
type Node struct{}

// StartNode returns an error that matches [errors.ErrUnsupported].
func StartNode(context.Context, NodeOptions) (*Node, error) {
	return nil, fmt.Errorf("start throw-away node: %s has no namespaces: %w", runtime.GOOS, errors.ErrUnsupported)
}

// The methods of a Node that cannot be.

func (*Node) Proc() string                                          { return "" }
func (*Node) Do(context.Context, func(context.Context) error) error { return nil }
func (*Node) StartCommand(*exec.Cmd) error                          { return nil }
func (*Node) Run(*exec.Cmd, func() error) error                     { return nil }
func (*Node) Kill() error                                           { return nil }
func (*Node) Close() error                                          { return nil }
