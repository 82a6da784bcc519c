// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package slipway_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An agent that requires these versions keeps them when it also imports a leaf.
const agentModule = `module example.com/agent

go 1.25

require (
	github.com/cilium/ebpf v0.19.0
	k8s.io/client-go v0.34.1
)
`

// raised has the versions that are above those of that client-go, since a vulnerability of the
// older ones reaches our code (Dependencies in CONTRIBUTING.md), and those that they ask for.
var raised = map[string]string{
	"golang.org/x/net":  "v0.55.0",
	"golang.org/x/text": "v0.39.0",
	"golang.org/x/sys":  "v0.45.0",
	"golang.org/x/term": "v0.43.0",
	"go":                "1.25.0",
}

func TestLeavesMoveNoImportersVersions(t *testing.T) {
	without := versions(t)
	require.Equal(t, "1.25", without["go"])
	require.Equal(t, "v0.19.0", without["github.com/cilium/ebpf"])
	require.Equal(t, "v0.34.1", without["k8s.io/client-go"])
	for name, leaves := range map[string][]string{"bpffs": {"bpffs"}, "all": leaves} {
		t.Run(name, func(t *testing.T) {
			with := versions(t, leaves...)
			require.Contains(t, with, module)
			for path, version := range without {
				if want := cmp.Or(raised[path], version); with[path] != want {
					t.Errorf("%s moves from %s to %q", path, version, with[path])
				}
			}
		})
	}
}

// versions makes the agent's module with imports of the leaves, and returns the versions in
// go.mod after go mod tidy, including Go's.
func versions(t *testing.T, leaves ...string) map[string]string {
	t.Helper()
	root, err := filepath.Abs(".")
	require.NoError(t, err)
	_, err = os.ReadFile("go.mod") // otherwise the test's cached result would survive a change of it
	require.NoError(t, err)
	dir, mod := t.TempDir(), agentModule
	imports := []string{"github.com/cilium/ebpf", "k8s.io/client-go/dynamic"}
	if len(leaves) > 0 {
		mod += fmt.Sprintf("\nrequire %s v0.0.0\n\nreplace %[1]s => %s\n", module, root)
	}
	for _, leaf := range leaves {
		imports = append(imports, module+"/"+leaf)
	}
	source := "package main\n\nimport (\n\t_ \"" + strings.Join(imports, "\"\n\t_ \"") + "\"\n)\n\nfunc main() {}\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o644))

	run := func(args ...string) []byte {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "PWD="+dir)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		require.NoError(t, err, stderr.String())
		return out
	}
	run("mod", "tidy")
	var file struct {
		Go      string
		Require []struct{ Path, Version string }
	}
	require.NoError(t, json.Unmarshal(run("mod", "edit", "-json"), &file))
	found := map[string]string{"go": file.Go}
	for _, r := range file.Require {
		found[r.Path] = r.Version
	}
	return found
}
