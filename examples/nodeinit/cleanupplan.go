// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/configresolve"
)

// planHead explains a plan to its reader.
const planHead = `# The only items that nodeinit cleanup --plan FILE removes, where it finds them.
# Delete the groups that must stay: a group goes or stays as a whole, and stays where it has
# an item that is not in this file. Instead of an object and members, a group may have a
# pattern, for names that differ on each node, such as {kind: link, match: lxc*}.
`

// plannedScope reads the plan, if one is given, and returns the scope: that of the plan, or
// the flags and the environment.
func (a *app) plannedScope(cmd *cobra.Command, scope string) (string, error) {
	switch {
	case a.planFile != "" && (!a.dryRun || a.planFrom != "" || scope == ""):
		return "", usage("--output-file goes with --dry-run and either --all-state or --bpf-state, and without --plan")
	case a.planFrom == "":
		return scope, nil
	}
	plan, err := readPlan(cmd.Context(), a.planFrom)
	if err != nil {
		return "", err
	}
	a.reviewed = plan
	if (a.allState || a.bpfState) && plan.Scope != scope {
		return "", usage("--plan %s: it is for %s, and the flags select %s", a.planFrom, plan.Scope, scope)
	}
	return plan.Scope, nil
}

// selected returns the items to remove. What the plan names and the node does not have is Left.
func (a *app) selected(found *cleanup.Inventory) *cleanup.Inventory {
	if a.reviewed == nil || found == nil {
		return found
	}
	found, missing := a.reviewed.Select(found)
	for _, name := range missing {
		found.Left = append(found.Left, cleanup.Item{Kind: "missing", Object: name, Detail: "the plan names it, and it is not on this node"})
	}
	return found
}

// configInvalid is the code of content that cannot be understood.
const configInvalid = "config.invalid"

// readPlan reads the plan in a file. An unknown field may restrict what to remove, so it is
// an error, as is another version.
func readPlan(ctx context.Context, path string) (*cleanup.Removals, error) {
	var plan cleanup.Removals
	switch err := configresolve.DecodeFile(ctx, path, &plan); {
	case err == nil, plan.Version > 1: // which has other fields
	case bootstrap.Code(err) == configInvalid:
		return nil, usage("--plan: %w", err)
	default:
		return nil, fmt.Errorf("--plan: %w", err)
	}
	if err := plan.Validate(); err != nil {
		return nil, usage("--plan %s: %w", path, err)
	}
	return &plan, nil
}

// writePlan writes a plan to a new file: an existing one may have been reviewed. It reads
// the file back as --plan does.
func writePlan(ctx context.Context, path string, plan cleanup.Removals, whole bool) (err error) {
	if !whole {
		return errors.New("--output-file: no plan is written, since part of the node could not be examined")
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("--output-file: %s exists, and may have been reviewed: name another file, or remove it first", path)
	case err != nil:
		return fmt.Errorf("--output-file: %w", err)
	}
	text, err := yaml.Marshal(plan)
	if err == nil {
		_, err = f.WriteString(planHead + string(text))
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		_, err = readPlan(ctx, path)
	}
	if err != nil {
		return fmt.Errorf("--output-file: %w", errors.Join(err, os.Remove(path)))
	}
	return nil
}
