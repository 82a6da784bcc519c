// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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

// thing reads one object of a list.
func thing(t *testing.T, object string) (one cleanup.Things) {
	t.Helper()
	kind, name, _ := strings.Cut(object, " ")
	words := strings.Fields(name)
	switch kind {
	case "program":
		one.Programs = []string{name}
	case "pin":
		one.Pins = []string{name}
	case "link":
		one.Links = []cleanup.Link{{Name: words[0], Kind: words[1]}}
	case "route":
		at := attributes(words[2:])
		r := cleanup.Route{Type: words[0], Dst: netip.MustParsePrefix(words[1]), Table: decimal(t, at["table"]), Protocol: uint8(decimal(t, at["proto"]))}
		if at["dev"] != "" {
			r.Links = []string{at["dev"]}
			one.Links = []cleanup.Link{{Name: at["dev"], Kind: "veth"}}
		}
		one.Routes = []cleanup.Route{r}
	case "rule":
		one.Rules = []cleanup.Rule{policy(t, words)}
	case "netns":
		one.NetNS = []string{name}
	case "xfrm":
		one.XFRM = []cleanup.Mark{mark(t, name)}
	case "chain":
		one.Chains = []string{name}
	case "comment":
		one.Comments = []string{name}
	case "table":
		one.NFTables = []cleanup.NFTable{{Family: words[0], Name: words[1]}}
	case "set":
		one.IPSets = []string{name}
	case "mount":
		one.Mounts = []cleanup.MountRule{{Path: words[0], Type: words[1]}}
	case "file", "folder":
		one.Files = []string{name}
	case "ipvs": // no ownership describes it
	default:
		t.Fatalf("what is %q?", object)
	}
	return one
}

func policy(t *testing.T, words []string) cleanup.Rule {
	t.Helper()
	at := attributes(words[1:])
	r := cleanup.Rule{Priority: decimal(t, words[0]), Table: decimal(t, at["lookup"]), Protocol: uint8(decimal(t, at["proto"]))}
	if words[1] == "not" {
		at = attributes(words[2:])
		r.Not, r.Table = true, decimal(t, at["lookup"])
	}
	if at["fwmark"] != "" {
		r.Mark = mark(t, at["fwmark"])
	}
	if at["from"] != "" {
		r.From = netip.MustParsePrefix(at["from"])
	}
	if at["to"] != "" {
		r.To = netip.MustParsePrefix(at["to"])
	}
	return r
}

// attributes reads words that alternate with their values.
func attributes(words []string) map[string]string {
	at := map[string]string{}
	for i := 0; i+1 < len(words); i += 2 {
		at[words[i]] = words[i+1]
	}
	return at
}

func mark(t *testing.T, text string) (m cleanup.Mark) {
	t.Helper()
	_, err := fmt.Sscanf(text, "0x%x/0x%x", &m.Value, &m.Mask)
	require.NoError(t, err)
	return m
}

func decimal(t *testing.T, text string) uint32 {
	t.Helper()
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 32)
	require.NoError(t, err)
	return uint32(n)
}
