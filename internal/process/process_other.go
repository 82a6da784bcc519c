// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package process

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"runtime"
)

var errPlatform = fmt.Errorf("processes on %s: %w", runtime.GOOS, errors.ErrUnsupported)

// All yields an error.
func All(context.Context) iter.Seq2[Process, error] {
	return func(yield func(Process, error) bool) { yield(Process{}, errPlatform) }
}

// Self returns an error.
func Self() (Process, error) { return Process{}, errPlatform }

// Status returns an error.
func (Process) Status(context.Context) (Status, error) { return Status{}, errPlatform }

// Start returns an error.
func (Process) Start(context.Context) (uint64, error) { return 0, errPlatform }

// Cgroups returns an error.
func (Process) Cgroups(context.Context) ([]string, error) { return nil, errPlatform }

// Program returns an error.
func (Process) Program() (string, error) { return "", errPlatform }

// Open returns an error.
func (Process) Open(string) (*os.File, error) { return nil, errPlatform }

// HoldsLock returns an error.
func (Process) HoldsLock(context.Context, uint64, uint64) (bool, error) { return false, errPlatform }
