// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package hostns

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
)

func inside(context.Context, string, []string) bool { return false }

func do(_ context.Context, procDir string, namespaces []string, _ func(context.Context) error) error {
	return fmt.Errorf("enter %s namespaces of %s: %s has none: %w", strings.Join(namespaces, ", "), procDir, runtime.GOOS, errors.ErrUnsupported)
}
