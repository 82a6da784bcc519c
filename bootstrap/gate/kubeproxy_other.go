// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package gate

import (
	"context"

	"github.com/slipway-dev/slipway/internal/unsupported"
)

func kubeProxy(context.Context) (bool, error) {
	_ = chains // which Linux looks for
	return false, unsupported.Error("kube-proxy's rules are looked for on Linux only")
}
