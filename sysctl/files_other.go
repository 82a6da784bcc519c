// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package sysctl

import (
	"errors"
	"fmt"
)

// procSys stands in where there is none.
type procSys string

func (p procSys) unsupported() error {
	return fmt.Errorf("%s: kernel values are Linux's: %w", string(p), errors.ErrUnsupported)
}

func (p procSys) ReadFile(string) ([]byte, error)  { return nil, p.unsupported() }
func (p procSys) WriteFile(string, []byte) error   { return p.unsupported() }
func (p procSys) ReadDir(string) ([]string, error) { return nil, p.unsupported() }
func (p procSys) Writable(string) error            { return p.unsupported() }

func capabilities() string { return "" }
