// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package bpfmap

import (
	"context"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/unsupported"
)

const errNotLinux = unsupported.Error("BPF maps are pinned on Linux only")

func (p Pinned) check(context.Context) ([]string, error) { return nil, errNotLinux }

func (p Pinned) apply(context.Context) error { return errNotLinux }

func lookAtPin(journal.Entry) (journal.Undo, error) { return journal.Undo{}, errNotLinux }
