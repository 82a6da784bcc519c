// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package onedoc_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/slipway-dev/slipway/internal/input/onedoc"
)

func TestCFG4_EmptyDocumentsAreSkippedAndASecondOneIsAnError(t *testing.T) {
	for content, want := range map[string]string{
		"a: 1\n":                             "1",
		"a: 1\n---\n":                        "1",
		"a: 1\n---\n# nothing\n---\n~\n":     "1",
		"---\n---\na: 1\n...\n---\nnull\n":   "1",
		"# nothing\n---\na: 1\n":             "1",
		"":                                   "",
		"---\n":                              "",
		"# nothing\n":                        "",
		"a: |\n  text\n  ---\n  text\n---\n": "text\n---\ntext\n",
	} {
		var read struct{ A string }
		require.NoError(t, onedoc.Decode([]byte(content), &read), "%q", content)
		require.Equal(t, want, read.A, "%q", content)
	}
	for content, says := range map[string]string{
		"a: 1\n---\na: 2\n":                "line 3 starts a second document",
		"---\n---\na: 1\n---\n---\n\n{}\n": "line 7 starts a second document",
		"a: 1\n---\nb: [\n":                "line 3",
		"b: 1\n":                           "field b not found",
	} {
		var read struct{ A string }
		require.ErrorContains(t, onedoc.Decode([]byte(content), &read), says, "%q", content)
	}
	var node yaml.Node
	require.NoError(t, onedoc.Decode([]byte("---\n---\nb: 1\n---\n"), &node))
	require.Equal(t, 3, node.Line)
}
