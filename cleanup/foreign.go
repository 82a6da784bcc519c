// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import "context"

// Foreign lists the objects of others in the agent's routing tables
// ([Ownership.SharedTables]): the policy routing rules that lead there and the routes in
// them, one line each, without those that the agent owns. It reads IPv4 and IPv6 in the
// calling thread's network namespace, and changes nothing. If a part cannot be read, it
// lists the rest, and the error names the missing part.
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
