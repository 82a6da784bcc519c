// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package slipway_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The README's program compiles, with nothing around it but what an agent has anyway.
func TestTheREADMECompiles(t *testing.T) {
	const around = `package main

import (
	"context"
	"encoding/json"
	"io/fs"
%s)

func main() {}

func run(ctx context.Context, podUID, path, server, ca, token string, plugins fs.FS, acme json.RawMessage, removed bool) (report *bootstrap.Report, _ error) {
%sreturn report, err
}
`
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	snippets := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	require.Len(t, snippets, 1)
	imports := strings.Builder{}
	for _, pkg := range []string{"bootstrap", "bootstrap/hostns", "bootstrap/hostpath", "bootstrap/ledger", "bootstrap/reconcile", "bpffs", "cniinstall"} {
		fmt.Fprintf(&imports, "\t%q\n", module+"/"+pkg)
	}
	place, err := filepath.Abs("examples/readme/main.go") // of which the compiler knows by the overlay alone
	require.NoError(t, err)
	dir := t.TempDir()
	program, overlay := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{place: program}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(program, fmt.Appendf(nil, around, imports.String(), snippets[0][1]), 0o600))
	require.NoError(t, os.WriteFile(overlay, replace, 0o600))
	out, err := exec.Command("go", "build", "-overlay", overlay, "-o", filepath.Join(dir, "program"), filepath.Dir(place)).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
