// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package sysctl

import (
	"fmt"

	"github.com/slipway-dev/slipway/internal/unsupported"
)

// procSys stands in on systems without /proc/sys.
type procSys string

var errNotLinux error = unsupported.Error("kernel values are Linux's")

func (p procSys) unsupported() error { return fmt.Errorf("%s: %w", string(p), errNotLinux) }

func (p procSys) ReadFile(string) ([]byte, error)  { return nil, p.unsupported() }
func (p procSys) WriteFile(string, []byte) error   { return p.unsupported() }
func (p procSys) ReadDir(string) ([]string, error) { return nil, p.unsupported() }
func (p procSys) Writable(string) error            { return p.unsupported() }
