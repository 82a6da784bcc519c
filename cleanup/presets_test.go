// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/slipway-dev/slipway/cleanup"
)

// Each preset is held against the objects that its agent's own uninstall removes, or that its
// source makes: a file in testdata/presets names each, and after a bar the reason why ours
// leaves it. What has no reason is owned, and what has one is not.
func TestCLN12_APresetKnowsWhatItsAgentsUninstallRemoves(t *testing.T) {
	presets := map[string]cleanup.Ownership{"cilium": cleanup.Cilium()}
	files, err := filepath.Glob("../examples/ownership/*.yaml")
	require.NoError(t, err)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		presets[name] = exampleOwnership(t, name)
	}
	require.Len(t, presets, 5)
	for name, own := range presets {
		t.Run(name, func(t *testing.T) {
			list, err := os.ReadFile("testdata/presets/" + name + ".txt")
			require.NoError(t, err)
			for line := range strings.Lines(string(list)) {
				object, reason, left := strings.Cut(strings.TrimSuffix(line, "\n"), " | ")
				if strings.HasPrefix(object, "#") {
					continue
				}
				require.Equal(t, left, reason != "", line)
				of, err := own.Of(thing(t, object))
				require.NoError(t, err)
				if owned := !reflect.ValueOf(of).IsZero(); owned == left {
					t.Errorf("%s: owned: %v", object, owned)
				}
			}
		})
	}
}

// thing reads one object of a list: its kind, and its name or its fields.
func thing(t *testing.T, object string) (one cleanup.Things) {
	t.Helper()
	kind, value, _ := strings.Cut(object, " ")
	field := map[string]string{
		"program": "programs", "pin": "pins", "link": "links", "route": "routes", "rule": "rules", "netns": "netns", "xfrm": "xfrm", "chain": "chains",
		"comment": "comments", "table": "nftables", "set": "ipsets", "mount": "mounts", "file": "files", "directory": "files",
	}[kind]
	if kind == "ipvs" { // no ownership describes it
		return one
	}
	require.NotEmpty(t, field, object)
	if !strings.HasPrefix(value, "{") {
		value = strconv.Quote(value)
	}
	d := yaml.NewDecoder(strings.NewReader(field + ": [" + value + "]"))
	d.KnownFields(true)
	require.NoError(t, d.Decode(&one), object)
	for _, r := range one.Routes {
		for _, link := range r.Links {
			one.Links = append(one.Links, cleanup.Link{Name: link, Kind: "veth"})
		}
	}
	return one
}

func mark(t *testing.T, text string) (m cleanup.Mark) {
	t.Helper()
	_, err := fmt.Sscanf(text, "0x%x/0x%x", &m.Value, &m.Mask)
	require.NoError(t, err)
	return m
}
