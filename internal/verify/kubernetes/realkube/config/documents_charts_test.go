// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build charts

package config_test

import (
	"bytes"
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
			if g.postrender != "" {
				continue // nothing is written
			}
			t.Run(version+" "+g.name, func(t *testing.T) {
				chart := template(t, version, g, ownImage)
				for _, w := range ways {
					if w.args == nil || g.run != "" && w.args[0] == "--as=run" {
						continue
					}
					ours, said := postRendered(t, postrender, chart, w.args...)
					require.Empty(t, said, w.name)
					requireOthersKept(t, chart, ours)
				}
			})
		}
	}
}

// A mirror's copy of the released image has no nodeinit either: here with the values of a
// managed cloud's guide, whose registry has one.
func TestChartsMirroredImageIsRefused(t *testing.T) {
	const image = "quay.tencentcloudcr.com/cilium/cilium"
	const digest = "sha256:5649db451c88d928ea585514746d50d91e6210801b300c897283ea319d68de15"
	postrender := buildPostrender(t)
	tag := template(t, "1.18.3", managed, "image.repository="+image)
	released := template(t, "1.18.3", managed, "image.repository="+image, "image.useDigest=true", "image.digest="+digest)
	require.Contains(t, released, image+":v1.18.3@"+digest)
	for _, chart := range []string{tag, released} {
		_, said := postRendered(t, postrender, chart)
		require.Contains(t, said, "has no nodeinit: set image.override to one that has it")
		ours, said := postRendered(t, postrender, chart, "--image-volume=example.com/nodeinit:1")
		require.Empty(t, said)
		requireOthersKept(t, chart, ours)
	}
	_, said := postRendered(t, postrender, tag, "--image-has-nodeinit")
	require.Empty(t, said)
	_, said = postRendered(t, postrender, released, "--image-has-nodeinit")
	require.Contains(t, said, "by its digest")
}

// template returns a whole chart as helm renders it.
func template(t *testing.T, version string, g given, values ...string) string {
	t.Helper()
	chart := filepath.Join(download(t, "github.com/cilium/cilium@v"+version), "install/kubernetes/cilium")
	args := []string{"template", "cilium", chart, "-n", "kube-system", "--kube-version", "1.33.0"}
	for _, value := range append(values, g.set...) {
		args = append(args, "--set", value)
	}
	out, err := exec.CommandContext(t.Context(), helm(t, helm3), args...).Output()
	require.NoError(t, err)
	return string(out)
}

// postRendered returns what the post-renderer writes, and what it says.
func postRendered(t *testing.T, postrender, chart string, args ...string) (ours, said string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), postrender, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(chart), &out, &errs
	require.Equal(t, cmd.Run() == nil, errs.Len() == 0, errs.String())
	return out.String(), errs.String()
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
