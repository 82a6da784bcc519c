// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package kmod

import (
	"context"

	"github.com/slipway-dev/slipway/internal/unsupported"
)

const errNotLinux = unsupported.Error("kernel modules exist on Linux only")

type kernel struct{}

func running(string) (*kernel, error) { return nil, errNotLinux }

func (*kernel) has(context.Context, string) (bool, error) { return false, errNotLinux }

func (*kernel) mayLoad(context.Context, string, bool) error { return errNotLinux }

func (*kernel) load(context.Context, string) error { return errNotLinux }
