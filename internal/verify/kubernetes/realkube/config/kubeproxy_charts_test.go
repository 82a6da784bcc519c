// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build charts

package config_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// nodeinit's gate replaces the chart's container that waits for kube-proxy: where the chart
// is told to wait, by the post-renderer, and by two components where it is not.
func TestRDY1_ChartsWaitForKubeProxyIsAGateOfNodeinits(t *testing.T) {
	kubectl := kubectl(t)
	kubectl(t, []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"cilium-secrets"}}`), "apply", "--server-side", "-f", "-")
	cilium := []string{"github.com/cilium/cilium@v1.20.2", "install/kubernetes/cilium", "kube-system"}
	without := render(t, cilium[0], cilium[1], cilium[2])
	waits := render(t, cilium[0], cilium[1], cilium[2], "--set", "waitForKubeProxy=true")
	binary := buildPostrender(t)
	for name, want := range map[string][]string{"--as=init": {"nodeinit --wait-for-kube-proxy=4m"}, "--as=run": {"cilium-agent --wait-for-kube-proxy=4m"}} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), binary, name)
			cmd.Stdin, cmd.Stderr = bytes.NewReader(waits), os.Stderr
			ours, err := cmd.Output()
			require.NoError(t, err)
			require.ElementsMatch(t, want, waiting(t, kubectl, ours))
			kubectl(t, ours, "apply", "--dry-run=server", "--validate=strict", "-f", "-") // it refuses privileged containers, such as the chart's
		})
	}
	for component, want := range map[string][]string{
		"cilium/one":            {"config"},
		"cilium/run":            nil,
		"cilium/one-kube-proxy": {"config 4m"},
		"cilium/run-kube-proxy": {"cilium-agent 4m"},
	} {
		t.Run(component, func(t *testing.T) {
			ours := postRender(t, component, without)
			require.ElementsMatch(t, want, waiting(t, kubectl, ours))
			kubectl(t, ours, "apply", "--dry-run=server", "--validate=strict", "-f", "-")
		})
	}
}

// waiting lists Cilium's init containers, and all with the variable or the flag that makes
// nodeinit wait for kube-proxy, with its value.
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
							Name    string
							Command []string
							Env     []struct{ Name, Value string }
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
			for _, word := range c.Command {
				if strings.HasPrefix(word, "--wait-for-kube-proxy") {
					name += " " + word
				}
			}
			if i < len(pod.InitContainers) || name != c.Name {
				list = append(list, name)
			}
		}
	}
	return list
}
