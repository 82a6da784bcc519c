// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package config_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/kube"
)

// grants returns a manifest's roles and bindings, by API path, bound to the account deployed
// instead of agent.
func grants(t *testing.T, file string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	found := map[string]string{}
	for document := range strings.SplitSeq(string(raw), "\n---\n") {
		kind, name := kindLine.FindStringSubmatch(document)[1], nameLine.FindStringSubmatch(document)[1]
		if strings.Contains(kind, "Role") {
			found[fmt.Sprintf(places[kind], name)] = strings.Replace(document, "    name: agent\n", "    name: deployed\n", 1)
		}
	}
	return found
}

// grantAll gives the account its rights until the test ends.
func grantAll(t *testing.T, all map[string]string) {
	t.Helper()
	for path, document := range all {
		require.NoError(t, server.Admin().ApplyYAML(t.Context(), path, []byte(document)))
		t.Cleanup(func() { require.NoError(t, server.Admin().Delete(context.WithoutCancel(t.Context()), path)) })
	}
}

var ruleLine = regexp.MustCompile(`(?m)^  - apiGroups: \[(.*)\]\n    resources: \[(.*)\]\n(?:    resourceNames: \[(.*)\]\n)?    verbs: \[(.*)\]\n?`)

// printed is a rule as an error prints it, without resource names: the manifest cannot know a
// Node's.
func printed(rule []string) string {
	return fmt.Sprintf("{apiGroups: [%q], resources: [%q]", strings.Trim(rule[1], `"`), rule[2])
}

// Each rule of the manifest is needed, and if it is missing the error names the rule to add;
// all rules together suffice.
func TestDeploymentExampleGrantsTheLeast(t *testing.T) {
	const namespace, node = "kube-system", "least"
	createConfigMap(t, namespace, "cilium-config", values{"a": "cm"})
	createNodeConfig(t, namespace, nodeConfig{"least", `{"matchLabels":{"zone":"least"}}`, values{"b": "cr"}})
	createNode(t, node, values{"zone": "least"}, values{"config.cilium.io/c": "node"})
	all := grants(t, "../../../../../examples/deploy/nodeinit.yaml")
	require.Len(t, all, 4)
	apply := func(path, document string) {
		require.NoError(t, server.Admin().ApplyYAML(t.Context(), path, []byte(document)))
	}
	grantAll(t, all)
	resolve := func(ctx context.Context) (*configresolve.Config, error) {
		client, _ := connect(t, kube.Connection{Kubeconfig: kubeconfig(t, server, deployed)})
		return configresolve.Resolve(ctx, sources(t, client, namespace, node, "config-map:cilium-config", "cilium-node-config:kube-system", "node")...)
	}
	suffices := func(ctx context.Context) error {
		config, err := resolve(ctx)
		if err == nil {
			require.Equal(t, values{"a": "cm", "b": "cr", "c": "node"}, maps.Collect(config.All()))
		}
		return err
	}
	eventually(t, suffices)

	rules := 0
	for _, path := range slices.Sorted(maps.Keys(all)) {
		for _, rule := range ruleLine.FindAllStringSubmatch(all[path], -1) {
			rules++
			require.NotContains(t, rule[2]+rule[4], ",", "one resource and one verb a rule")
			apply(path, without(all[path], rule[2]))
			eventually(t, func(ctx context.Context) error { // until the authorizer has seen it
				_, err := resolve(ctx)
				if !apierrors.IsForbidden(err) {
					return fmt.Errorf("without %s: not denied: %w", printed(rule), errors.Join(err, errors.New("want a denial")))
				}
				require.ErrorContains(t, err, printed(rule))
				require.ErrorContains(t, err, fmt.Sprintf("verbs: [%q]})", rule[4]))
				require.ErrorContains(t, err, rule[3], "the names that the manifest has")
				return nil
			})
			apply(path, all[path])
			eventually(t, suffices)
		}
	}
	require.Equal(t, 3, rules)
}
