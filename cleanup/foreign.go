// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import "context"

// Foreign lists the objects of others in the agent's way: the policy routing rules that lead
// to its tables ([Ownership.SharedTables]) and the routes in them, and the rules that send
// packets with one of its marks (those of [Ownership.Rules]) to another table than it does.
// Each is one line; what the agent owns is left out. It reads IPv4 and IPv6 in the calling
// thread's network namespace, and changes nothing. If a part cannot be read, it lists the
// rest, and the error names the missing part.
func (o Ownership) Foreign(ctx context.Context) (found []string, err error) {
	if len(o.SharedTables)+len(o.Rules) == 0 {
		return nil, nil
	}
	l := Leftovers{Ownership: o, Scope: allState}
	own, err := l.compile()
	if err != nil {
		return nil, err
	}
	inv, err := l.inventory(ctx, own, policyRouting())
	for _, item := range inv.Left {
		found = append(found, item.String()+": "+item.Detail)
	}
	return found, err
}
