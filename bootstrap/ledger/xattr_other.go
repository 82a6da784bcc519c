// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package ledger

import "os"

// xattrs returns nil: they are known on Linux only.
func xattrs(*os.File) (map[string][]byte, error) { return nil, nil }

func mayHaveCapabilities(State) error { return nil }

func setXattrs(*os.File, map[string][]byte) error { return nil }
