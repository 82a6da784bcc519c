// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package hostlocal

import (
	"context"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/unsupported"
)

func lock(context.Context, *durable.Dir) (unlock func(), err error) {
	return nil, unsupported.Error("host-local's store is locked on Linux only")
}
