// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bench_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/bench"
)

var older = flag.String("older", "", "another checkout, to compare the growth with")

const module = "github.com/slipway-dev/slipway"

// uses are the packages, each with an expression that links its main use.
var uses = []struct{ pkg, expression string }{
	{"bootstrap", "(&bootstrap.Plan{}).Apply"},
	{"bootstrap/ledger", "(&ledger.Ledger{}).Open"},
	{"bootstrap/hostns", "hostns.Host{}.Do"},
	{"bootstrap/reconcile", "reconcile.Loop{}.Run"},
	{"bootstrap/cri", "cri.Endpoint{}.CNI"},
	{"bootstrap/gate", "gate.KubeProxy().Wait"},
	{"bootstrap/kmod", "kmod.Modules{}.Apply"},
	{"bootstrap/probe", "(&probe.Probe{}).Serve"},
	{"bootstrap/bpfmap", "bpfmap.Pinned{}.Wants"},
	{"bootstrap/hostlocal", "hostlocal.Store{}.Apply"},
	{"bootstrap/kube", "kube.Node{}.Apply"},
	{"bootstrap/preflight", "preflight.Checks{{Find: preflight.Cilium}}.Apply"},
	{"bootstrap/textfile", "textfile.WriteFile"},
	{"bpffs", "bpffs.Mount{}.Apply"},
	{"cgroup", "cgroup.Mount{}.Apply"},
	{"sysctl", "sysctl.DropIn{}.Apply"},
	{"cniinstall", "cniinstall.Install{}.Apply"},
	{"cleanup", "cleanup.Leftovers{}.Apply"},
	{"configresolve", "configresolve.Resolve"},
	{"configresolve/configdir", "configdir.Write"},
	{"configresolve/kube", "kube.Connection{}.Client"},
}

// The growth of a program by using a package, compared with one that only prints: its
// binary, for linux/amd64 and without symbols; the number of linked packages of other
// modules; and the number of modules in its go.mod after go mod tidy.
func BenchmarkGrowth(b *testing.B) {
	checkouts := map[string]string{bench.Ours: "../../.."}
	if *older != "" {
		checkouts["older"] = *older
	}
	bare := map[string]growth{}
	for who, checkout := range checkouts {
		bare[who] = grow(b, checkout, "", "")
	}
	for _, use := range uses {
		b.Run(use.pkg, func(b *testing.B) {
			m := bench.Measured{}
			for b.Loop() {
				for who, checkout := range checkouts {
					g := grow(b, checkout, use.pkg, use.expression)
					m.Add(who, "MiB", float64(g.size-bare[who].size)/(1<<20))
					m.Add(who, "packages", float64(g.packages-bare[who].packages))
					m.Add(who, "modules", float64(g.modules-bare[who].modules))
				}
			}
			m.Report(b)
		})
	}
}

// growth holds the measurements of a program.
type growth struct{ size, packages, modules int }

func grow(b *testing.B, checkout, pkg, expression string) (g growth) {
	dir := b.TempDir()
	checkout, err := filepath.Abs(checkout)
	require.NoError(b, err)
	imported := ""
	if pkg != "" {
		imported = fmt.Sprintf("import %q\n", module+"/"+pkg)
	}
	program := fmt.Sprintf("package main\n\nimport \"fmt\"\n%s\nfunc main() { fmt.Println(%s) }\n", imported, cmp.Or(expression, `""`))
	mod := fmt.Sprintf("module growth.test\n\ngo 1.25.0\n\nrequire %s v0.0.0\n\nreplace %[1]s => %s\n", module, checkout)
	require.NoError(b, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600))
	require.NoError(b, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o600))

	goIn(b, dir, "mod", "tidy")
	goIn(b, dir, "build", "-trimpath", "-ldflags=-s -w", "-o", "program")
	info, err := os.Stat(filepath.Join(dir, "program"))
	require.NoError(b, err)
	for _, name := range strings.Fields(goIn(b, dir, "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")) {
		if !strings.HasPrefix(name, module) && name != "growth.test" {
			g.packages++
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(b, err)
	g.size, g.modules = int(info.Size()), strings.Count(string(raw), " v")
	return g
}

// goIn runs the go command in dir, for linux/amd64 and without cgo.
func goIn(b *testing.B, dir string, args ...string) string {
	c := exec.CommandContext(b.Context(), "go", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOFLAGS=-mod=mod", "PWD="+dir)
	var said strings.Builder
	c.Stderr = &said
	out, err := c.Output()
	require.NoError(b, err, "go %s: %s", strings.Join(args, " "), said.String())
	return string(out)
}
