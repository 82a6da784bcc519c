// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package cri

import (
	"context"
	"net"

	"github.com/slipway-dev/slipway/internal/unsupported"
)

const errNotLinux = unsupported.Error("container runtimes are found on Linux only")

func find(context.Context, string) (string, error) { return "", errNotLinux }

func (Endpoint) dial(context.Context) (net.Conn, error) { return nil, errNotLinux }
