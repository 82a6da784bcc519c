// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/image/licences"
)

// valid holds an SBOM against the schema of its format, which comes with the module of
// those who publish it.
func valid(t *testing.T, text []byte) error {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	for name, file := range map[string]string{ // the last is misspelt there
		"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schemax.json",
	} {
		schema, err := os.Open(filepath.Join(strings.TrimSpace(string(out)), "schema", file))
		require.NoError(t, err)
		defer schema.Close()
		document, err := jsonschema.UnmarshalJSON(schema)
		require.NoError(t, err)
		require.NoError(t, compiler.AddResource("http://cyclonedx.org/schema/"+name, document))
	}
	schema, err := compiler.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	require.NoError(t, err)
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	return schema.Validate(document)
}

var update = flag.Bool("update", false, "write the golden file anew")

func TestTheSBOMIsAsItWas(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: "example.com/m"}}
	std := licences.Module{Path: "std", Version: "1.26.8", IDs: []string{"BSD-3-Clause"}}
	a, b := licences.Module{Path: "example.com/a", Version: "v1.0.0", IDs: []string{"MIT"}}, licences.Module{Path: "example.com/b", Version: "v2.0.0+incompatible", IDs: []string{"Apache-2.0", "ISC"}}
	text, err := sbom("v0.1.0", "2030-01-02T03:04:05Z", []built{
		{"one", "amd64", []byte("1"), info, []licences.Module{std, a}}, {"two", "arm64", []byte("2"), info, []licences.Module{std, a, b}},
	})
	require.NoError(t, err)
	const golden = "testdata/sbom.cdx.json"
	if *update {
		require.NoError(t, os.WriteFile(golden, text, 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), string(text))
	require.NoError(t, valid(t, text))
	require.ErrorContains(t, valid(t, bytes.Replace(text, []byte(`"ISC"`), []byte(`"Isc"`), 1)), "/components/3/licenses/1/license/id")
}
