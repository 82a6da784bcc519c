// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/configresolve"
)

func (a *app) explainCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "explain [KEY...]", Args: cobra.ArbitraryArgs,
		Short: "Show where each configuration value comes from, what it overrides, and what was denied",
		RunE: func(cmd *cobra.Command, keys []string) error {
			a.defaultSources()
			resolver, err := a.resolver()
			if err != nil {
				return err
			}
			a.at.work("", "--source "+strings.Join(a.sources, ","))
			config, err := resolver.Resolve(cmd.Context())
			if err != nil {
				return err
			}
			a.suggest(config, keys)
			return a.showExplanation(config.Explain(keys...))
		},
	}
	a.sourceFlags(c.Flags())
	a.outputFlag(c.Flags())
	return c
}

// suggest names the keys that may be meant by those that are not set.
func (a *app) suggest(config *configresolve.Config, keys []string) {
	known := slices.Sorted(maps.Keys(config.Data()))
	for _, key := range keys {
		if _, set := config.Lookup(key); set {
			continue
		}
		if meant := near(key, known); meant != "" {
			a.printErrorLine(bootstrap.OneLine(fmt.Sprintf("%q is not set: did you mean %s?", key, meant)), "")
		}
	}
}

func (a *app) showExplanation(x configresolve.Explanation) error {
	if a.output == formatJSON {
		e := json.NewEncoder(a.stdout)
		e.SetIndent("", "  ")
		return e.Encode(x)
	}
	if a.showValues {
		x = x.Revealed()
	}
	_, err := fmt.Fprint(a.stdout, x)
	return err
}
