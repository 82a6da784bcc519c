// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
)

const childFlag = "-child"

type bench struct {
	counts           []int
	runs, singleRuns int
	tcx              bool
	nice             int
	cilium           string
}

func (bench) run(io.Writer) error {
	return fmt.Errorf("on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func child(string) error { return errors.ErrUnsupported }
