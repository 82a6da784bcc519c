// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !unix

package durable

import "os"

// SyncDir does nothing: directories cannot be synced here.
func SyncDir(string) error { return nil }

func lockTemp(*os.File) (*os.File, bool, error) { return nil, true, nil }
func lockLinks(string) (func(), error)          { return func() {}, nil }
func sweepFile(string) error                    { return nil }
func sweepLink(string) error                    { return nil }
