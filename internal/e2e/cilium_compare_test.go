// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build compare

package e2e_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/image"
)

// importCilium gives the node an image with what Cilium's init containers run.
func importCilium(t *testing.T) {
	t.Helper()
	standin, err := build(t.Context(), "internal/e2e/standin")
	require.NoError(t, err)
	files := append(ciliumContents(t), image.File{Path: "/standin", Mode: 0o755, Content: standin})
	require.NoError(t, node.Import(t.Context(), ciliumImage, nil, files...))
}

// ciliumsSix is the DaemonSet of Cilium's chart, with its own six init containers.
// Changed are the images, the agent, and the capabilities that this machine has not
// got.
func ciliumsSix(t *testing.T) *deployment {
	t.Helper()
	d := &deployment{name: "cilium"}
	for _, o := range documents(t, chart(t)) {
		name, kind := at(o, "metadata")["name"].(string), o["kind"].(string)
		needed := []string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ConfigMap", "DaemonSet"}
		if !slices.Contains(needed, kind) || !slices.Contains([]string{"cilium", "cilium-config", "cilium-config-agent"}, name) {
			continue
		}
		d.objects = append(d.objects, o)
		if kind == "DaemonSet" {
			at(o, "spec", "selector")["matchLabels"] = object{"app": "cilium"}
			at(o, "spec", "template", "metadata")["labels"] = object{"app": "cilium"}
			d.pod = at(o, "spec", "template", "spec")
		}
	}
	require.NotNil(t, d.pod)
	inits := d.pod["initContainers"].([]any)
	require.Len(t, inits, 6)
	for _, c := range inits {
		own(c.(object))
	}
	d.init = inits[0].(object)
	d.pod["containers"] = []any{object{"name": "cilium-agent", "image": ciliumImage, "command": []any{"/standin"}}}
	delete(d.pod, "affinity")
	return d
}
