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

// errNoScope is in the error for a [Scope] that selects nothing.
var errNoScope = errors.New("no scope selected")

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
		return fmt.Errorf("cleanup: %w: choose %s or %s", errNoScope, BPFState, AllState)
	}
	return fmt.Errorf("cleanup: %w: %s is unknown", errNoScope, s)
}

// CiliumScope returns the larger of the scopes that the environment and a configuration
// select. In the environment, as Cilium's init container reads it, CILIUM_ALL_STATE or
// CLEAN_CILIUM_STATE is [AllState], CILIUM_BPF_STATE or CLEAN_CILIUM_BPF_STATE is
// [BPFState]; in a configuration, clean-cilium-state and clean-cilium-bpf-state are. Each
// counts if it is "true", and anything else selects nothing. The function env is
// [os.LookupEnv] or one like it, config that of a configuration that is whole in trusted
// hands; where Nodes are among its sources, it is configresolve.Config.Trusted. Nil is for
// none.
func CiliumScope(env, config func(string) (string, bool)) (scope Scope) {
	for _, from := range []struct {
		lookup func(string) (string, bool)
		scope  Scope
		names  []string
	}{
		{env, AllState, []string{"CILIUM_ALL_STATE", "CLEAN_CILIUM_STATE"}},
		{env, BPFState, []string{"CILIUM_BPF_STATE", "CLEAN_CILIUM_BPF_STATE"}},
		{config, AllState, []string{"clean-cilium-state"}},
		{config, BPFState, []string{"clean-cilium-bpf-state"}},
	} {
		for _, name := range from.names {
			if from.lookup == nil {
				continue
			}
			if value, _ := from.lookup(name); value == "true" {
				scope = max(scope, from.scope)
			}
		}
	}
	return scope
}
