// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/kube"
	"github.com/slipway-dev/slipway/configresolve"
	configkube "github.com/slipway-dev/slipway/configresolve/kube"
)

// checkAccess is the check of preflight that asks the cluster.
const checkAccess = "access"

// forbidden is the code of a denial.
const forbidden = "kube.forbidden"

// longestAsking bounds the questions to the cluster.
const longestAsking = 5 * time.Second

// answered is a checker that has looked already: a plan looks on the host, where the
// container's credentials are not.
type answered struct {
	findings []error
	err      error
}

func (a answered) Findings(context.Context) ([]error, error) { return a.findings, a.err }

// warning is a finding with which the plan goes on.
type warning struct{ error }

// Code is found by bootstrap.Code.
func (w warning) Code() string { return bootstrap.Code(w.error) }

// askAccess asks the cluster, for a check, which requests of the plan it would deny. The
// sources count unless they have been read; a run whose report is denied still does its
// work.
func (a *app) askAccess(ctx context.Context, config *configresolve.Config) (all answered) {
	var rules []kube.Rule
	if config == nil {
		rules = a.sourceRules()
	}
	asks := a.preflight && !a.leftOut(stepPreflight) && !slices.Contains(a.ignorePreflight, checkAccess)
	if !asks || !a.enableK8s || len(rules) == 0 && !a.reportNode {
		return answered{}
	}
	client, err := a.connection().Client()
	if err != nil {
		return answered{err: err}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, longestAsking, fmt.Errorf("the API server was tried for %s", longestAsking))
	defer cancel()
	all.findings, all.err = kube.Access(client.Dynamic, rules...)(ctx)
	if !a.reportNode || all.err != nil {
		return all
	}
	unreported, err := kube.Access(client.Dynamic, kube.Reporter{Node: a.nodeName}.Rules()...)(ctx)
	for _, finding := range unreported {
		all.findings = append(all.findings, warning{fmt.Errorf("--report-node: %w", finding)})
	}
	all.err = err
	return all
}

// sourceRules are the rights that the sources need in the cluster.
func (a *app) sourceRules() (rules []kube.Rule) {
	specs, _ := a.specs(a.namespace) // an error is that of reading them
	for _, spec := range specs {
		rule := kube.Rule{Verb: "get", Namespace: spec.Namespace, Name: spec.Name}
		switch spec.Kind {
		case "config-map":
			rule.Resource = "configmaps"
		case "node":
			rule.Resource = "nodes"
		case "cilium-node-config":
			r := configkube.Cilium().NodeConfigs[0]
			if rule.Group, rule.Resource = r.Group, r.Resource; spec.Name == "" {
				rule.Verb = "list"
				rules = append(rules, kube.Rule{Verb: "get", Resource: "nodes", Name: a.nodeName}) // whose labels they select by
			}
		default:
			continue
		}
		rules = append(rules, rule)
	}
	return slices.Compact(rules)
}
