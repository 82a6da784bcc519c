// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package preflight

import (
	"errors"
	"fmt"
	"runtime"
)

// ciliumFeatures are for Linux. Here they cannot be determined.
func ciliumFeatures() []Feature {
	return []Feature{{Name: "the syscall bpf", Have: func() error {
		return fmt.Errorf("%w on %s", errNotLinux, runtime.GOOS)
	}}}
}

var errNotLinux = fmt.Errorf("the kernel cannot be asked: %w", errors.ErrUnsupported)

// isMissing returns false: on this system, no error says that a Linux kernel lacks a
// feature.
func isMissing(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, errNotLinux)
}
