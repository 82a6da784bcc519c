// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package hostns

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

func inside(context.Context, string, Namespace) bool { return false }

func do(_ context.Context, procDir string, ns Namespace, _ func(context.Context) error) error {
	return fmt.Errorf("enter %v namespaces of %s: %s has none: %w", ns, procDir, runtime.GOOS, errors.ErrUnsupported)
}
