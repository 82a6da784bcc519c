// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package slipway_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each numbered promise has a test with that number, and each number in a test's name is a
// promise.
func TestEachBehaviourHasATest(t *testing.T) {
	text, err := os.ReadFile("BEHAVIOUR.md")
	require.NoError(t, err)
	var promised []string
	area := ""
	item := regexp.MustCompile(`^(\d+)\. `)
	for line := range strings.Lines(string(text)) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			area, _, _ = strings.Cut(heading, ":")
		} else if m := item.FindStringSubmatch(line); m != nil {
			promised = append(promised, area+m[1])
		}
	}

	function := regexp.MustCompile(`(?m)^func (?:Test|Fuzz|Benchmark)((?:[A-Z]{2,4}\d+_)+)`)
	var tested []string
	require.NoError(t, filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		source, err := os.ReadFile(name)
		for _, m := range function.FindAllSubmatch(source, -1) {
			tested = append(tested, strings.Split(strings.TrimSuffix(string(m[1]), "_"), "_")...)
		}
		return err
	}))
	slices.Sort(promised)
	slices.Sort(tested)
	require.Equal(t, promised, slices.Compact(tested))
}
