// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/kube"
)

// watchConfig writes the resolved configuration and keeps it up to date until
// the program is told to end. Each change is printed: what, and from where. What
// cannot be read any more is logged, and the directory stays as it was.
func (a *app) watchConfig(ctx context.Context) error {
	resolver, err := a.resolver()
	if err != nil {
		return err
	}
	resolver.Strict = a.strict
	err = kube.Watch(ctx, resolver, func(u kube.Update) error {
		if u.Err != nil {
			a.logger().Error(u.Err.Error(), "step", stepConfig)
			return nil
		}
		for _, finding := range u.Config.Findings() {
			a.logger().Warn(finding.String(), "step", stepConfig)
		}
		if _, err := configresolve.WriteDir(ctx, a.dest, u.Config); err != nil {
			return err
		}
		return a.showChanges(u.Changes)
	})
	if ctx.Err() != nil {
		return nil // told to end
	}
	return err
}

// resolver merges what the flags name.
func (a *app) resolver() (configresolve.Resolver, error) {
	specs, err := configresolve.ParseSpecs(a.sources, configresolve.SpecDefaults{Namespace: a.namespace, NodeName: a.nodeName})
	if err != nil {
		return configresolve.Resolver{}, fmt.Errorf("--source: %w", err)
	}
	sources, err := a.open(specs)
	return configresolve.Resolver{Sources: sources, AllowKeys: a.allowKeys, DenyKeys: a.denyKeys}, err
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
		if _, err := fmt.Fprintln(a.stdout, change); err != nil {
			return err
		}
	}
	return nil
}
