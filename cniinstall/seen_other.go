// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package cniinstall

import "os"

// sight is what is seen of a file without reading it: here nothing that could
// be relied on.
type sight struct{}

func (sight) String() string { return "" }

func see(*os.File) (sight, bool) { return sight{}, false }

type held struct{}

func hold(string, sight) *held { return nil }

func (*held) look() string { return "" }

func (*held) release() {}
