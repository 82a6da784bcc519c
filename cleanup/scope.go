// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"errors"
	"fmt"
)

// The scopes of [Leftovers].
const (
	bpfState = "bpf-state"
	allState = "all-state"
)

// errNoScope is in the error for a scope that selects nothing.
var errNoScope = errors.New("no scope selected")

func validScope(scope string) error {
	switch scope {
	case bpfState, allState:
		return nil
	case "":
		return fmt.Errorf("cleanup: %w: choose %s or %s", errNoScope, bpfState, allState)
	}
	return fmt.Errorf("cleanup: %w: %q is unknown", errNoScope, scope)
}

// CiliumScope returns the larger of the scopes of [Leftovers] that the environment and a
// configuration select, or "". In the environment, as Cilium's init container reads it,
// CILIUM_ALL_STATE or CLEAN_CILIUM_STATE is all-state, CILIUM_BPF_STATE or
// CLEAN_CILIUM_BPF_STATE is bpf-state; in a configuration, clean-cilium-state and
// clean-cilium-bpf-state are. Each counts if it is "true", and anything else selects
// nothing. The function env is [os.LookupEnv] or one like it, config that of a
// configuration that is whole in trusted hands; where Nodes are among its sources, it is
// configresolve.Config.Trusted. Nil is for none.
func CiliumScope(env, config func(string) (string, bool)) (scope string) {
	for _, from := range []struct {
		lookup func(string) (string, bool)
		scope  string
		names  []string
	}{
		{env, allState, []string{"CILIUM_ALL_STATE", "CLEAN_CILIUM_STATE"}},
		{env, bpfState, []string{"CILIUM_BPF_STATE", "CLEAN_CILIUM_BPF_STATE"}},
		{config, allState, []string{"clean-cilium-state"}},
		{config, bpfState, []string{"clean-cilium-bpf-state"}},
	} {
		for _, name := range from.names {
			if from.lookup == nil {
				continue
			}
			if value, _ := from.lookup(name); value == "true" && scope != allState {
				scope = from.scope
			}
		}
	}
	return scope
}
