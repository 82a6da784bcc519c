// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package cgroup

import (
	"os"

	"github.com/slipway-dev/slipway/internal/unsupported"
)

const errNotLinux = unsupported.Error("there are cgroups on Linux only")

func detect(string) (string, error) { return "", errNotLinux }

func id(string) (uint64, error) { return 0, errNotLinux }

func open(string) (*os.File, error) { return nil, errNotLinux }
