// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniresult_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/cniresult"
)

func TestCNI10_WhatAConfigurationNames(t *testing.T) {
	for conf, named := range map[string]string{
		`{"name":"n","plugins":[{"type":"a"},{"type":"portmap"}]}`:                           "portmap",
		`{"name":"n","type":"portmap"}`:                                                      "portmap",
		`{"name":"n","TYPE":"portmap"}`:                                                      "portmap",
		`{"name":"n","type":"\u0070ortmap"}`:                                                 "portmap",
		`{"name":"n","plugins":[{"type":"a","ipam":{"type":"host-local"}}]}`:                 "host-local",
		`{"name":"n","type":"multus","delegates":[{"plugins":[{"type":"a"},{"type":"b"}]}]}`: "b",
		`{"name":"n","plugins":[{"type":"a","delegate":{"type":"ptp"}}]}`:                    "ptp",
		`{"name":"n","plugins":[{"type":"flannel"}]}`:                                        "host-local",
		`{"name":"n","plugins":[{"type":"portmap"`:                                           "portmap",
		"type: portmap\n":                 "portmap",
		"portmap":                         "portmap",
		"a_portmap portmap.old x/portmap": "portmap",
	} {
		require.True(t, cniresult.Names([]byte(conf), named), conf)
		require.False(t, cniresult.Names([]byte(conf), "other"), conf)
	}
	for conf, unnamed := range map[string]string{
		`{"name":"portmap","plugins":[{"type":"a","log":"portmap"}]}`: "portmap",
		`{"name":"n","plugins":[{"type":"portmap2"}]}`:                "portmap",
		`{"name":"n","type":["portmap"]}`:                             "portmap",
		`{"type":"my-portmap`:                                         "portmap",
		`{"type":"portmap.old`:                                        "portmap",
		"":                                                            "portmap",
		"x":                                                           "",
	} {
		require.False(t, cniresult.Names([]byte(conf), unnamed), conf)
	}
	deep := strings.Repeat(`{"a":`, 9000) + `{"type":"portmap"}` + strings.Repeat("}", 9000)
	require.True(t, cniresult.Names([]byte(deep), "portmap"))
	deeper := strings.Repeat("[", 1<<20)
	require.False(t, cniresult.Names([]byte(deeper), "portmap"))
}

// In any text, a plugin that occurs as a word or as a type is found.
func FuzzCNI10_Names(f *testing.F) {
	f.Add(`{"name":"n","plugins":[`, `]}`)
	f.Add(`{"a":`, `,"type":"x"}`)
	f.Add("", "")
	f.Fuzz(func(t *testing.T, before, after string) {
		require.True(t, cniresult.Names([]byte(before+`{"type":"portmap"}`+after), "portmap") || isString(before))
		cniresult.Names([]byte(before+after), "portmap")
	})
}

// isString reports whether what comes after text may be within a string.
func isString(text string) bool { return strings.Contains(text, `"`) }

// Both directories that callers of libcni are known to use are read by default.
func TestCNI10_BothResultCachesOfLibcniAreRead(t *testing.T) {
	root := t.TempDir()
	dirs := []string{filepath.Join(root, "results"), filepath.Join(root, "cache/results")}
	uses := func(plugin string) error {
		return cniresult.Cache{Dirs: dirs}.InUse(t.Context(), plugin, func(r cniresult.Result) bool { return r.Names(plugin) })
	}
	require.NoError(t, uses("portmap"), "no result exists")
	for _, dir := range dirs {
		require.NoError(t, os.MkdirAll(dir, 0o755))
		path := filepath.Join(dir, "n-a-eth0")
		// {"name":"n","plugins":[{"type":"a","ipam":{"type":"portmap"}}]}
		require.NoError(t, os.WriteFile(path, []byte(`{"containerId":"a","networkName":"n","config":"eyJuYW1lIjoibiIsInBsdWdpbnMiOlt7InR5cGUiOiJhIiwiaXBhbSI6eyJ0eXBlIjoicG9ydG1hcCJ9fV19"}`), 0o600))
		require.ErrorIs(t, uses("portmap"), cniresult.ErrInUse)
		require.ErrorContains(t, uses("portmap"), dir)
		require.NoError(t, uses("bridge"))
		require.NoError(t, os.Remove(path))
	}
}

// Only a runtime's word that it does not know the sandbox makes a result stale.
func TestCLN12_AResultOfNoSandboxCountsForNothing(t *testing.T) {
	dir := t.TempDir()
	for sandbox, conf := range map[string]string{"a": `{"type":"portmap"}`, "b": `{"type":"portmap"}`, "c": `{"type":"bridge"}`} {
		content, err := json.Marshal(cniresult.Result{ContainerID: sandbox, NetworkName: "n", Config: []byte(conf)})
		require.NoError(t, err)
		path := filepath.Join(dir, "n-"+sandbox+"-eth0")
		require.NoError(t, os.WriteFile(path, content, 0o600))
		require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)))
	}
	asked := 0
	uses := func(plugin string, listed []string, fails error) error {
		c := cniresult.Cache{Dirs: []string{dir}, Sandboxes: func(context.Context) ([]string, error) { asked++; return listed, fails }}
		return c.InUse(t.Context(), plugin, func(r cniresult.Result) bool { return r.Names(plugin) })
	}
	const kept = "sandboxes need it for their deletion: "
	require.NoError(t, uses("portmap", nil, nil))
	require.NoError(t, uses("portmap", []string{"c", "d"}, nil))
	require.ErrorContains(t, uses("portmap", []string{"b"}, nil), kept+"1, by "+dir+"/n-b-eth0: delete the pods")
	require.ErrorContains(t, uses("portmap", []string{"b", "a"}, nil), kept+"2, by "+dir+"/n-a-eth0: delete the pods")
	err := uses("portmap", nil, errors.New("nobody answers"))
	require.ErrorIs(t, err, cniresult.ErrInUse)
	require.ErrorContains(t, err, kept+"2, by "+dir+"/n-a-eth0 (whether they still exist is unknown: nobody answers): delete the pods that have a network from it, remove the results of those that do not exist, and undo again")

	// A sandbox that is being created has a result before the runtime lists it.
	require.NoError(t, os.Chtimes(filepath.Join(dir, "n-b-eth0"), time.Time{}, time.Now()))
	require.ErrorContains(t, uses("portmap", nil, nil), kept+"1, by "+dir+"/n-b-eth0 (b is none that the runtime lists, but may be starting: its result is younger than 10m0s): delete the pods that have a network from it, and undo again; if there are none, undo again in 10m0s")
	require.NoError(t, uses("bridge", nil, nil))

	asked = 0
	require.NoError(t, uses("tuning", nil, nil))
	require.Zero(t, asked, "no result needs it")

	// A power cut leaves a result that cannot be read: its sandbox is in its name.
	torn := filepath.Join(dir, "n-e-eth0")
	require.NoError(t, os.WriteFile(torn, nil, 0o600))
	require.ErrorContains(t, uses("tuning", nil, nil), "cannot tell which sandbox needs "+torn+" (unexpected end of JSON input) (n-e-eth0 is none")
	require.NoError(t, os.Chtimes(torn, time.Time{}, time.Now().Add(-time.Hour)))
	require.ErrorContains(t, uses("tuning", []string{"d", "e"}, nil), "cannot tell which sandbox needs "+torn+" (unexpected end of JSON input): delete the pods")
	require.NoError(t, uses("tuning", []string{"d", "th0"}, nil), "it is of no sandbox any more")
}

func TestCNI8_WhichConfigurationServesForAnother(t *testing.T) {
	conf := func(plugins string) []byte { return []byte(`{"name":"n","plugins":[` + plugins + `]}`) }
	const bridge, own = `{"type":"bridge","ipam":{"type":"host-local"}}`, `{"type":"own"}`
	require.True(t, cniresult.Covers(conf(bridge), conf(bridge)))
	require.True(t, cniresult.Covers(conf(bridge+","+own), conf(bridge)))
	require.True(t, cniresult.Covers(conf(`{"type":"flannel"}`), conf(bridge)), "flannel runs both")
	require.False(t, cniresult.Covers(conf(bridge), conf(bridge+","+own)))
	require.False(t, cniresult.Covers(conf(`{"type":"bridge"}`), conf(bridge)), "nor has it an ipam")
	require.False(t, cniresult.Covers(conf(bridge), []byte("bridge")), "no JSON")
}
