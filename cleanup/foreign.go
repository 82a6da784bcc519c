// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import "context"

// Foreign lists what others have in the agent's routing tables ([Ownership.SharedTables]):
// the rules of policy routing that lead there, and the routes in them, a line each. What
// the agent owns is not among it. It looks at IPv4 and IPv6 in the calling thread's network
// namespace, and changes nothing; see [Leftovers.Inventory] for the error.
func (o Ownership) Foreign(ctx context.Context) (found []string, err error) {
	if len(o.SharedTables) == 0 {
		return nil, nil
	}
	routing := Ownership{
		Agent: o.Agent, Exceptions: o.Exceptions, Links: o.Links,
		Routes: o.Routes, Rules: o.Rules, LocalRule: o.LocalRule, SharedTables: o.SharedTables,
	}
	inv, err := Leftovers{Ownership: routing, Scope: AllState}.Inventory(ctx)
	for _, item := range inv.Left {
		if item.Kind == kindRule || item.Kind == kindRoute {
			found = append(found, item.String()+": "+item.Detail)
		}
	}
	return found, err
}
