// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/configresolve/kube"
)

func (a *app) buildConfig(cmd *cobra.Command, _ []string) error {
	a.defaultSources()
	switch {
	case a.watch && a.timelineFile != "":
		return usage("--timeline is for a run that ends, not for --watch")
	case a.watch:
		return a.watchConfig(cmd.Context())
	}
	// The calls that write and sync the files report failures: reading
	// everything back would take half as long again.
	if err := a.drawTimeline(); err != nil {
		return err
	}
	plan := &bootstrap.Plan{Prepare: a.prepareConfig, Steps: []bootstrap.Step{{Name: stepConfig, Local: true}}}
	return a.showPlan(cmd.Context(), plan, (*bootstrap.Plan).Apply)
}

// prepareConfig resolves the configuration for the step that writes it.
func (a *app) prepareConfig(ctx context.Context, p *bootstrap.Plan) error {
	config, err := a.resolve(ctx)
	if err != nil {
		return unresolved(err)
	}
	p.Step(stepConfig).Wants = configdir.Writer{Path: a.dest, Config: config}
	return nil
}

// defaultSources are those of Cilium's init container.
func (a *app) defaultSources() {
	if len(a.sources) == 0 {
		a.sources = []string{"config-map", "cilium-node-config"}
	}
}

// resolve reads all sources, and logs remarks for an administrator.
func (a *app) resolve(ctx context.Context) (*configresolve.Config, error) {
	config, err := a.read(ctx)
	if err == nil {
		a.logFindings(config)
	}
	return config, err
}

// read reads all sources.
func (a *app) read(ctx context.Context) (*configresolve.Config, error) {
	resolver, err := a.resolver()
	if err != nil {
		return nil, err
	}
	end := a.timeline.Begin("resolve configuration")
	a.at.work(stepConfig, "--source "+strings.Join(a.sources, ","))
	config, err := resolver.Resolve(ctx)
	if err != nil {
		end(bootstrap.Failed, err.Error())
		return nil, err
	}
	end(bootstrap.Unchanged)
	return config, nil
}

// loggedFindings is how many findings are logged one by one. A source can have as many as
// keys.
const loggedFindings = 100

func (a *app) logFindings(config *configresolve.Config) {
	log, findings := a.logger(), config.Explain().Findings
	for _, finding := range findings[:min(len(findings), loggedFindings)] {
		log.Warn(finding.String(), "step", stepConfig)
	}
	if more := len(findings) - loggedFindings; more > 0 {
		log.Warn(fmt.Sprintf("and %d findings more, which explain lists", more), "step", stepConfig)
	}
}

// resolver reads the sources of the flags, under their policy.
func (a *app) resolver() (configresolve.Resolver, error) {
	specs, err := a.specs(a.namespace)
	if err != nil {
		return configresolve.Resolver{}, usage("--source: %w (--k8s-namespace gives the namespace)", err)
	}
	sources, err := a.open(specs)
	return configresolve.Resolver{Sources: sources, AllowKeys: a.allowKeys, DenyKeys: a.denyKeys, Strict: a.strict, Revealed: a.showValues}, err
}

func (a *app) specs(namespace string) ([]configresolve.Ref, error) {
	return configresolve.ParseSpecs(a.sources, configresolve.Ref{Namespace: namespace, Name: kube.Cilium().ConfigMap}, a.nodeName)
}

// open makes sources of specs, with one client for all that need a cluster.
func (a *app) open(specs []configresolve.Ref) (sources []configresolve.Source, err error) {
	var client *kube.Client
	for _, spec := range specs {
		if spec.Cluster() && !a.enableK8s {
			return nil, usage("source %s is in the cluster, and --enable-k8s is false", spec)
		}
		if spec.Cluster() && client == nil {
			if client, err = a.connection().Client(); err != nil {
				return nil, err
			}
		}
		var source configresolve.Source
		if spec.Cluster() {
			source, err = client.Source(spec, kube.Cilium(), a.nodeName)
		} else {
			source, err = spec.Source(os.Environ())
		}
		if err != nil {
			return nil, err
		}
		sources = append(sources, source)
	}
	return sources, nil
}

func (a *app) explain(cmd *cobra.Command, keys []string) error {
	a.defaultSources()
	config, err := a.read(cmd.Context())
	if err != nil {
		return err
	}
	a.suggest(config, keys)
	x := config.Explain(keys...)
	if a.output == formatJSON {
		return a.writeJSON(x)
	}
	_, err = fmt.Fprint(a.stdout, x)
	return err
}

// suggest names the keys that may be meant by those that are not set.
func (a *app) suggest(config *configresolve.Config, keys []string) {
	known := slices.Sorted(maps.Keys(config.Data()))
	for _, key := range keys {
		if meant := didYouMean(key, known); meant != "" && !slices.Contains(known, key) {
			a.printErrorLine(bootstrap.OneLine(fmt.Sprintf("%q is not set%s", key, meant)), "")
		}
	}
}

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
		if _, err := fmt.Fprintln(a.stdout, change); err != nil {
			return err
		}
	}
	return nil
}
