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

// mostTables is the number of rules and routes that a finding names.
const mostTables = 10

// Tables returns a check whether others use the routing tables of an agent, or route packets
// with its marks, which the agent knows: a cleanup.Ownership, such as cleanup.Cilium(), whose
// Foreign lists the rules and routes of others there, one per line. Its one finding names them,
// and is a warning: which packets go wrong depends on the routes.
func Tables(agent interface {
	Foreign(ctx context.Context) ([]string, error)
}) func(context.Context) (findings []error, err error) {
	return func(ctx context.Context) ([]error, error) {
		if agent == nil {
			return nil, errors.New("no agent given: cleanup.Cilium() is one")
		}
		found, err := agent.Foreign(ctx)
		return inUse(found), err
	}
}

func inUse(found []string) []error {
	if len(found) == 0 {
		return nil
	}
	more := ""
	if n := len(found) - mostTables; n > 0 {
		found, more = found[:mostTables], fmt.Sprintf(", and %d more", n)
	}
	return []error{code.Errorf(code.PreflightTableInUse, "others use routing tables or marks of the agent, so packets may take routes that it does not intend, and it may delete theirs: %s%s (give these another table or mark; if an agent that is gone has left them, remove them)",
		strings.Join(found, ", "), more)}
}
