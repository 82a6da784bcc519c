// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package unsupported has the error for operations that this platform does not support.
package unsupported

import "errors"

// Error matches [errors.ErrUnsupported] without repeating its text.
type Error string

func (e Error) Error() string { return string(e) }

// Is reports whether target is [errors.ErrUnsupported].
func (Error) Is(target error) bool { return target == errors.ErrUnsupported }
