// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

var exotic = regexp.MustCompile("[\u0085\u2028\u2029\ufeff]|(?:^|[\r\n])%")

// The parser finds the same documents in the whole stream as in each part.
func FuzzSplit(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		f.Add(generated(r) + generated(r))
	}
	f.Fuzz(func(t *testing.T, stream string) {
		parts := split([]byte(stream))
		require.Equal(t, stream, string(bytes.Join(parts, nil)))
		all, err := decodeAll(stream)
		if err != nil || exotic.MatchString(stream) {
			return
		}
		var split []any
		for at := 1; at < len(parts); at += 2 {
			one, err := decodeAll("---" + string(parts[at]))
			if !bytes.HasSuffix(parts[at-1], []byte("---")) {
				one, err = decodeAll(string(parts[at]))
			}
			if err != nil && strings.Contains(err.Error(), "unknown anchor") {
				return // of an earlier document, which YAML does not know either
			}
			require.NoError(t, err, "%q", parts[at])
			split = append(split, one...)
		}
		require.Equal(t, fmt.Sprintf("%q", all), fmt.Sprintf("%q", split))
	})
}

// generated is a document with the things that programs tend to write anew.
func generated(r *rand.Rand) string {
	word := func() string {
		return []string{"a", "two words", "# no comment", "---", "'", "\"", "é", "  deep", ""}[r.IntN(9)]
	}
	var text strings.Builder
	text.WriteString([]string{"---\n", "--- # why\n", "---\n# Source: cilium/templates/x.yaml\n", "---\t\n\n", "\ufeff---\n", "---\n---\n"}[r.IntN(6)])
	for i := range r.IntN(6) {
		switch fmt.Fprintf(&text, "key%d:", i); r.IntN(9) {
		case 0, 1:
			text.WriteString([]string{" >", " >-", " >+", " |", " |-", " |+"}[r.IntN(6)] + "\n  begins\n")
			for range r.IntN(6) {
				text.WriteString(strings.TrimRight("  "+word(), " ") + "\n")
			}
		case 2:
			text.WriteString("   spaces   # and a comment\n")
		case 3:
			text.WriteString(" {flow:  [1,2 ,  3], \"quoted\": 'it''s'}\n")
		case 4:
			text.WriteString("\n    - four\n    -   {a: 1}\n    # in a list\n")
		case 5:
			text.WriteString(" \"long " + strings.Repeat("line \\\n   ", r.IntN(3)) + strings.Repeat("word ", r.IntN(40)) + "\"\n")
		case 6:
			text.WriteString([]string{" 0o17", " 0400", " 1_000", " yes", " ~", " 1.10", " 2026-01-02", ""}[r.IntN(8)] + "\n")
		case 7:
			text.WriteString(" &anchor x\nagain: *anchor\n")
		case 8:
			text.WriteString(" \"\\u2028\\t\\x85\"\n\n\n")
		}
	}
	document := text.String() + []string{"", "", "", "...\n", "# last\n"}[r.IntN(5)]
	switch r.IntN(8) {
	case 0:
		return strings.ReplaceAll(document, "\n", "\r\n")
	case 1:
		return strings.ReplaceAll(document, "\n", "\r")
	}
	return document
}

// decodeAll returns the documents that are not empty.
func decodeAll(stream string) (all []any, err error) {
	decoder := yaml.NewDecoder(strings.NewReader(stream))
	for {
		var one any
		switch err := decoder.Decode(&one); {
		case err == io.EOF:
			return all, nil
		case err != nil:
			return nil, err
		case one != nil:
			all = append(all, one)
		}
	}
}
