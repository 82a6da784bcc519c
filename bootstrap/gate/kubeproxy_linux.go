// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package gate

import (
	"context"
	"fmt"
	"slices"

	"github.com/slipway-dev/slipway/internal/netfilter"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// kubeProxy reports whether one of the chains exists.
func kubeProxy(ctx context.Context) (bool, error) {
	for _, f := range netfilter.Families() {
		found, err := hasChains(ctx, f)
		if err != nil {
			err = remedy.Capabilities(err, "in the user namespace of the network namespace", remedy.NetAdmin)
			return false, fmt.Errorf("look for the chains of kube-proxy for %s: %w", f.Version, err)
		}
		if found {
			return true, nil
		}
	}
	return false, nil
}

// hasChains asks nf_tables for each chain by its name, and legacy iptables for its whole
// table nat.
func hasChains(ctx context.Context, f netfilter.Family) (bool, error) {
	for _, c := range chains() {
		if found, err := f.HasChain(c.table, c.name); err != nil || found {
			return found, err
		}
	}
	const nat = "nat"
	names, err := f.LegacyChains(ctx, nat)
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(chains(), chain{nat, name}) }), err
}
