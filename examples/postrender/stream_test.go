// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireKept runs with a chart's DaemonSet between two texts, and requires that these stay byte for
// byte.
func requireKept(t *testing.T, before, daemonSet, after string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, run([]string{"--image-has-nodeinit"}, strings.NewReader(before+daemonSet+after), &out, io.Discard), "%q %q", before, after)
	require.Equal(t, before, out.String()[:min(out.Len(), len(before))])
	require.Equal(t, after, out.String()[max(0, out.Len()-len(after)):])
	require.GreaterOrEqual(t, out.Len(), len(before)+len(after))
	ours := out.String()[len(before) : out.Len()-len(after)]
	r, err := read(strings.NewReader(ours))
	require.NoError(t, err)
	require.Len(t, r.init, 1)
	return ours
}

func TestDocumentsOfOthersPassByteForByte(t *testing.T) {
	chart := charts(t)["cilium-1.18.3.yaml"]
	for name, text := range map[string]string{
		"comment after the marker":      "--- # why\na: 1\n",
		"blanks after the marker":       "---  \t\na: 1\n",
		"document in the marker's line": "--- {a: 1}\n",
		"text in the marker's line":     "--- |\n  a\n  ---\n",
		"nothing":                       "---\n---\n\n---\n# only a comment\n",
		"marker in a text":              "---\na: |\n  ---\n  # Source: b\n  ---\n  kind: DaemonSet # cilium-agent\n",
		"no marker":                     "---\na: b\n---c: 1\n--- d\n",
		"folded":                        "---\na: >\n  one\n\n   more\n  two\nb: >+\n  x\n\n\nc: >-\n  " + strings.Repeat("long ", 50) + "\n",
		"CRLF":                          "---\r\na: |\r\n  b\r\n---\r\nc: 1\r\n",
		"lone CRs":                      "---\ra: 1\r---\rb: 2\r",
		"byte order marks":              "\ufeff---\na: 1\n\ufeff---\n\ufeffb: 1\n",
		"end of a document":             "---\na: 1\n...\n# between\n%YAML 1.2\n---\nb: 1\n... # end\n",
		"no YAML":                       "---\n{{ .Values }}\n\ta: [\n",
		"keys twice, anchors, tags":     "---\na: &x {b: 1}\na: *x\nc: !mine d\n? e\n: 0o7\n",
		"JSON":                          "---\n{\"kind\":\"X\",\"a\":\"\\u2028\"}\n",
		"other ends of a line":          "---\na: b\u2028--- c\nd: \u0085--- e\n",
		"no UTF-8":                      "---\na: \xff\xfe\x00\n",
		"another DaemonSet":             "---\nkind:   DaemonSet\nspec: {template: {spec: {containers: [{name: cilium-agent-envoy}]}}}\n",
		"another ConfigMap":             "---\nkind:   ConfigMap\nmetadata:   {name: cilium-config-2}\ndata: {kube-proxy-replacement: 'true'}\n",
	} {
		t.Run(name, func(t *testing.T) {
			requireKept(t, text, chart, "")
			requireKept(t, text, chart, text)
			requireKept(t, "", chart, text+"---\nlast: without end")
			if !strings.HasSuffix(text, "\n") { // the parser must see the chart's first line
				return
			}
			requireKept(t, text+"---\n# Source: comments stay\n\n# too\n", strings.TrimPrefix(chart, "---\n"), text)
		})
	}
	requireKept(t, "\ufeff# first\n--- # why\n", strings.TrimPrefix(chart, "---\n"), "...\n# between\nbare: document\n")
	requireKept(t, "---", "\n"+strings.TrimPrefix(chart, "---\n"), "")
	ours := requireKept(t, "---", " {kind: DaemonSet, spec: {template: {spec: {"+
		"initContainers: [{name: config, image: a, command: [cilium-dbg, build-config]}], containers: [{name: cilium-agent, image: a}]}}}}\n", "")
	require.Regexp(t, `^\n\{kind: DaemonSet`, ours, "not in the marker's line")
	requireKept(t, "", strings.ReplaceAll(chart, "\n", "\r\n"), "---\r\na: 1\r\n")
}

// Ends of a line that the parser knows, and YAML 1.2 does not, do not make a document vanish.
func TestADocumentInOursIsRefused(t *testing.T) {
	chart := charts(t)["cilium-1.18.3.yaml"]
	_, err := render(t, chart+"# \u2028---\nkind: Secret\n")
	require.ErrorContains(t, err, "read the chart: a document does not end where the next begins")
}

// Whatever the style of a text in the DaemonSet, it says the same afterwards.
func TestTheAgentsTextsSayTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const annotation = "        kubectl.kubernetes.io/default-container"
	for range 30 {
		var texts strings.Builder
		for i := range 10 {
			fmt.Fprintf(&texts, "        text%d: %s\n", i, []string{">", ">-", ">+", "|", "|-", "|+"}[r.IntN(6)])
			for j := range 1 + r.IntN(8) {
				line := []string{"one", "# two", "   deep", "---", "", "", "a: 'b'", strings.Repeat("long ", 30) + "line", "\ttab"}[r.IntN(9)]
				if j == 0 {
					line = "begins"
				}
				texts.WriteString(strings.TrimRight("          "+line, " ") + "\n")
			}
		}
		chart := edit(t, charts(t)["cilium-1.18.3.yaml"], annotation, texts.String()+annotation)
		before, err := read(strings.NewReader(chart))
		require.NoError(t, err)
		after, err := render(t, chart)
		require.NoError(t, err)
		require.Equal(t, before.pod.GetAnnotations(), after.annotations, texts.String())
	}
}
