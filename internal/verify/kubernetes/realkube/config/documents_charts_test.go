// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build charts

package config_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Of each whole chart with each set of values, the post-renderer changes the agent's DaemonSet
// and no byte of another document.
func TestChartsDocumentsOfOthersStayByteForByte(t *testing.T) {
	postrender := buildPostrender(t)
	for _, version := range ciliums {
		for _, g := range sets {
			if g.Postrender != "" {
				continue // nothing is written
			}
			t.Run(version+" "+g.Name, func(t *testing.T) {
				chart := template(t, version, g)
				for _, w := range ways {
					if w.args == nil || g.Run != "" && w.args[0] == "--as=run" {
						continue
					}
					cmd := exec.CommandContext(t.Context(), postrender, w.args...)
					cmd.Stdin, cmd.Stderr = strings.NewReader(chart), os.Stderr
					ours, err := cmd.Output()
					require.NoError(t, err, w.name)
					requireOthersKept(t, chart, string(ours))
				}
			})
		}
	}
}

// template returns a whole chart as helm renders it.
func template(t *testing.T, version string, g given) string {
	t.Helper()
	chart := filepath.Join(download(t, "github.com/cilium/cilium@v"+version), "install/kubernetes/cilium")
	args := []string{"template", "cilium", chart, "-n", "kube-system", "--kube-version", "1.33.0"}
	for _, value := range append([]string{ownImage}, g.Set...) {
		args = append(args, "--set", value)
	}
	out, err := exec.CommandContext(t.Context(), helm(t, helm3), args...).Output()
	require.NoError(t, err)
	return string(out)
}

// requireOthersKept compares all documents but the agent's DaemonSet.
func requireOthersKept(t *testing.T, chart, ours string) {
	t.Helper()
	const between = "\n---\n"
	before, after := strings.Split(chart, between), strings.Split(ours, between)
	require.Len(t, after, len(before))
	require.Greater(t, len(before), 10, "this is the whole chart")
	changed := 0
	for i, document := range before {
		if strings.Contains(document, "\nkind: DaemonSet\n") && strings.Contains(document, "\n  name: cilium\n") {
			require.NotEqual(t, document, after[i])
			changed++
		} else {
			require.Equal(t, document, after[i])
		}
	}
	require.Equal(t, 1, changed)
}
