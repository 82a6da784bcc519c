// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"errors"
	"fmt"
)

// Scope selects how much of an agent's property is removed.
type Scope uint8

const (
	// BPFState selects the BPF programs (tc filters, tcx, netkit, XDP, those of
	// cgroups) and the pins.
	BPFState Scope = iota + 1

	// AllState selects everything that is owned.
	AllState
)

// ErrNoScope is matched by the error for a [Scope] that selects nothing.
var ErrNoScope = errors.New("no scope selected")

// String returns "bpf-state" or "all-state", and "none" for the zero value.
func (s Scope) String() string {
	switch s {
	case 0:
		return "none"
	case BPFState:
		return "bpf-state"
	case AllState:
		return "all-state"
	}
	return fmt.Sprintf("scope %d", uint8(s))
}

func (s Scope) validate() error {
	switch s {
	case BPFState, AllState:
		return nil
	case 0:
		return fmt.Errorf("cleanup: %w: choose %s or %s", ErrNoScope, BPFState, AllState)
	}
	return fmt.Errorf("cleanup: %w: %s is unknown", ErrNoScope, s)
}

// CiliumScopeFromEnv returns the scope that the environment selects, as Cilium's
// init container reads it: CILIUM_ALL_STATE or CLEAN_CILIUM_STATE equal to
// "true" is [AllState], CILIUM_BPF_STATE or CLEAN_CILIUM_BPF_STATE equal to
// "true" is [BPFState], and anything else selects nothing. The function lookup
// is [os.LookupEnv] or one like it.
func CiliumScopeFromEnv(lookup func(string) (string, bool)) Scope {
	return scopeFrom(lookup,
		[]string{"CILIUM_ALL_STATE", "CLEAN_CILIUM_STATE"},
		[]string{"CILIUM_BPF_STATE", "CLEAN_CILIUM_BPF_STATE"})
}

// CiliumScopeFromConfig returns the scope that a resolved configuration selects by
// its keys clean-cilium-state ([AllState]) and clean-cilium-bpf-state
// ([BPFState]), where they are "true". The function lookup is that of a
// configuration that is whole in trusted hands; where Nodes are among its sources, it
// is configresolve.Config.Trusted.
func CiliumScopeFromConfig(lookup func(string) (string, bool)) Scope {
	return scopeFrom(lookup, []string{"clean-cilium-state"}, []string{"clean-cilium-bpf-state"})
}

func scopeFrom(lookup func(string) (string, bool), all, bpf []string) Scope {
	for _, name := range all {
		if value, _ := lookup(name); value == "true" {
			return AllState
		}
	}
	for _, name := range bpf {
		if value, _ := lookup(name); value == "true" {
			return BPFState
		}
	}
	return 0
}
