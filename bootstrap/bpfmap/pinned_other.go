// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build !linux

package bpfmap

import (
	"context"

	"github.com/cilium/ebpf"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/unsupported"
)

const errNotLinux = unsupported.Error("BPF maps are pinned on Linux only")

func (p Pinned) mapWants(_ context.Context, spec *ebpf.MapSpec) []ledger.Want {
	return []ledger.Want{{Kind: pinKind(spec), Object: p.Dir, To: ledger.State{Type: typeMap}}}
}

func (Pinned) ready(context.Context) error { return errNotLinux }

func readPin(context.Context, string) (ledger.State, error) { return ledger.State{}, errNotLinux }

func writePin(context.Context, string, ledger.State) error { return errNotLinux }

func stage(string, *ebpf.MapSpec) (*ledger.Staged, error) { return nil, errNotLinux }
