// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/configresolve/kube"
)

// watchConfig writes the resolved configuration and keeps it up to date until the program
// is asked to end. Each change is printed with its source. A source that can no longer be
// read is logged, and the directory stays as it was; a failed write ends the program, so
// that its caller notices.
func (a *app) watchConfig(ctx context.Context) error {
	resolver, err := a.resolver()
	if err != nil {
		return err
	}
	err = kube.Watch(ctx, resolver, func(u configresolve.Update) error {
		if u.Err != nil {
			a.logger().Error(bootstrap.OneLine(u.Err.Error()), "step", stepConfig)
			return nil
		}
		a.logFindings(u.Config)
		if _, err := configdir.Write(ctx, a.dest, u.Config); errors.Is(err, configdir.ErrEmpty) {
			a.logger().Error(bootstrap.OneLine(err.Error()), "step", stepConfig) // the agent keeps its configuration
			return nil
		} else if err != nil {
			return err
		}
		return a.showChanges(u.Changes)
	})
	if ctx.Err() != nil {
		return nil // asked to end
	}
	return err
}

// showChanges prints a line for each change, or one JSON document for all that
// came at once.
func (a *app) showChanges(changes []configresolve.Change) error {
	if a.output == formatJSON {
		return json.NewEncoder(a.stdout).Encode(struct {
			Dest    string                 `json:"dest"`
			Changes []configresolve.Change `json:"changes"`
		}{a.dest, changes})
	}
	for _, change := range changes {
		if a.showValues {
			change = change.Revealed()
		}
		if _, err := fmt.Fprintln(a.stdout, change); err != nil {
			return err
		}
	}
	return nil
}
