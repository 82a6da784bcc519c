// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package kmod

import (
	"context"

	"github.com/slipway-dev/slipway/internal/unsupported"
)

const errNotLinux = unsupported.Error("kernel modules are Linux's")

type kernel struct{}

func running() (*kernel, error) { return nil, errNotLinux }

func (*kernel) has(context.Context, string) (bool, error) { return false, errNotLinux }

func (*kernel) mayLoad(context.Context, string) error { return errNotLinux }

func load(context.Context, string) error { return errNotLinux }
