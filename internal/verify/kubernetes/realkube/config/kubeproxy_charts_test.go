// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build charts

package config_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// On request, nodeinit's gate replaces the chart's container that waits for kube-proxy; with
// one container, and where nodeinit runs alone, the chart's stays.
func TestRDY1_ChartsWaitForKubeProxyIsAGateOfNodeinits(t *testing.T) {
	kubectl := kubectl(t)
	kubectl(t, []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"cilium-secrets"}}`), "apply", "--server-side", "-f", "-")
	chart := render(t, "github.com/cilium/cilium@v1.20.2", "install/kubernetes/cilium", "kube-system", "--set", "waitForKubeProxy=true")
	without := render(t, "github.com/cilium/cilium@v1.20.2", "install/kubernetes/cilium", "kube-system")
	for component, want := range map[string][]string{
		"cilium/one":            {"wait-for-kube-proxy", "config"},
		"cilium/run":            {"wait-for-kube-proxy"},
		"cilium/one-kube-proxy": {"config 4m"},
		"cilium/run-kube-proxy": {"cilium-agent 4m"},
	} {
		t.Run(component, func(t *testing.T) {
			ours := postRender(t, component, chart)
			require.ElementsMatch(t, want, waiting(t, kubectl, ours))
			if strings.HasSuffix(component, "-kube-proxy") {
				kubectl(t, ours, "apply", "--dry-run=server", "--validate=strict", "-f", "-") // the API server refuses privileged containers, such as the chart's
				require.ElementsMatch(t, want, waiting(t, kubectl, postRender(t, component, without)), "the chart's values do not matter")
			}
		})
	}
}

// waiting lists Cilium's init containers, and all with the variable that makes nodeinit
// wait for kube-proxy, with its value.
func waiting(t *testing.T, kubectl func(*testing.T, []byte, ...string) []byte, ours []byte) (list []string) {
	t.Helper()
	var all struct {
		Items []struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct {
				Template struct {
					Spec struct {
						InitContainers, Containers []struct {
							Name string
							Env  []struct{ Name, Value string }
						}
					}
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(kubectl(t, ours, "apply", "--dry-run=client", "-o", "json", "-f", "-"), &all))
	for _, item := range all.Items {
		if item.Kind != "DaemonSet" || item.Metadata.Name != "cilium" {
			continue
		}
		pod := item.Spec.Template.Spec
		for i, c := range append(pod.InitContainers, pod.Containers...) {
			name := c.Name
			for _, env := range c.Env {
				if env.Name == "SLIPWAY_WAIT_FOR_KUBE_PROXY" {
					name += " " + env.Value
				}
			}
			if i < len(pod.InitContainers) || name != c.Name {
				list = append(list, name)
			}
		}
	}
	return list
}
