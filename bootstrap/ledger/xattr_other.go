// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package ledger

import (
	"io"
	"os"
)

func clone(*os.File, io.Reader) bool { return false }

// xattrs returns nil: they are known on Linux only.
func xattrs(*os.File) (map[string][]byte, error) { return nil, nil }

func mayHaveCapabilities(State) error { return nil }

func setXattrs(*os.File, map[string][]byte) error { return nil }
