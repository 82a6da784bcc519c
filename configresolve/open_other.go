// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !unix

package configresolve

import (
	"os"

	"github.com/slipway-dev/slipway/internal/record"
)

const nonblock = 0 // no file waits in open

// chown does nothing: the record notes no owners here.
func chown(*os.Root, string, record.State) error { return nil }
