// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import "context"

// Foreign lists what others have in the agent's routing tables ([Ownership.SharedTables]):
// the rules of policy routing that lead there, and the routes in them, a line each. What
// the agent owns is not among it. It looks at IPv4 and IPv6 in the calling thread's network
// namespace, and changes nothing. Where a part cannot be looked at, the rest is listed, and
// the error says what is missing.
func (o Ownership) Foreign(ctx context.Context) (found []string, err error) {
	if len(o.SharedTables) == 0 {
		return nil, nil
	}
	l := Leftovers{Ownership: o, Scope: AllState}
	own, err := l.compile()
	if err != nil {
		return nil, err
	}
	inv, err := l.foreign(ctx, own)
	for _, item := range inv.Left {
		found = append(found, item.String()+": "+item.Detail)
	}
	return found, err
}
