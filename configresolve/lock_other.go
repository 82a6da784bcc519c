// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !unix

package configresolve

import (
	"context"
	"errors"
)

var errReadOnly = errors.New("read-only file system")

// lockDir takes no lock: there is none here that dies with the process.
func lockDir(context.Context, string) (unlock func(), err error) { return func() {}, nil }
