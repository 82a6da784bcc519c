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

// Tables checks whether others use the routing tables of an agent, or route packets with
// its marks. Its finding is a warning: which packets go wrong depends on the routes.
type Tables struct {
	// Agent knows the tables and marks: a cleanup.Ownership, such as cleanup.Cilium().
	Agent interface {
		// Foreign lists the rules and routes of others there, one per line.
		Foreign(ctx context.Context) ([]string, error)
	}
}

// mostTables is the number of rules and routes that a finding names.
const mostTables = 10

// Findings returns one finding that names all rules and routes.
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
	return []error{code.Errorf(code.PreflightTableInUse, "others use routing tables or marks of the agent, so packets may take routes that it does not intend, and it may delete theirs: %s%s (give these another table or mark; if an agent that is gone has left them, remove them)",
		strings.Join(found, ", "), more)}, err
}
