// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package preflight

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/slipway-dev/slipway/internal/code"
)

// Tables looks whether others use the routing tables of an agent, or route packets with its
// marks. It is a warning: which packets go wrong depends on what is there.
type Tables struct {
	// Agent knows the tables and marks: a cleanup.Ownership, such as cleanup.Cilium().
	Agent interface {
		// Foreign lists what others have there, a line each.
		Foreign(ctx context.Context) ([]string, error)
	}
}

// mostTables is how many rules and routes are named.
const mostTables = 10

// Findings has one finding with all rules and routes.
func (t Tables) Findings(ctx context.Context) ([]error, error) {
	if t.Agent == nil {
		return nil, errors.New("no agent given: cleanup.Cilium() is one")
	}
	found, err := t.Agent.Foreign(ctx)
	if len(found) == 0 {
		return nil, err
	}
	more := ""
	if n := len(found) - mostTables; n > 0 {
		found, more = found[:mostTables], fmt.Sprintf(", and %d more", n)
	}
	return []error{code.Errorf(code.PreflightTableInUse, "others use routing tables or marks of the agent, so packets go where it does not mean them to, and what it deletes there may be theirs: %s%s (give these another table or mark; if they are what an agent left that is gone, remove them)",
		strings.Join(found, ", "), more)}, err
}
