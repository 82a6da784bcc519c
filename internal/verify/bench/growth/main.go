// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command growth prints what a program grows by when it uses a package: the size
// of its binary, how many packages of other modules are linked, and how many
// modules its go.mod names after go mod tidy. Give it the checkout, and another one
// to compare with:
//
//	go run ./internal/verify/bench/growth . [../older]
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const module = "github.com/slipway-dev/slipway"

// uses are the packages, each with an expression that links what it is for.
var uses = []struct{ pkg, expression string }{
	{"", ""},
	{"bootstrap", "(&bootstrap.Plan{}).Apply"},
	{"bootstrap/journal", "journal.Open"},
	{"bootstrap/hostns", "hostns.Host{}.In"},
	{"bootstrap/reconcile", "reconcile.Loop{}.Run"},
	{"bootstrap/cri", "cri.Endpoint{}.Status"},
	{"bootstrap/gate", "gate.KubeProxy"},
	{"bootstrap/kmod", "kmod.Modules{}.Apply"},
	{"bootstrap/probe", "(&probe.Probe{}).Serve"},
	{"bootstrap/bpfmap", "bpfmap.Pinned{}.Apply"},
	{"bootstrap/hostlocal", "hostlocal.Store{}.Apply"},
	{"bootstrap/kube", "kube.Node{}.Apply"},
	{"bpffs", "bpffs.Mount{}.Apply"},
	{"cgroup", "cgroup.Mount{}.Apply"},
	{"sysctl", "sysctl.DropIn{}.Apply"},
	{"cniinstall", "cniinstall.Install{}.Apply"},
	{"cleanup", "cleanup.Leftovers{}.Apply"},
	{"configresolve", "configresolve.Resolve"},
	{"configresolve/configdir", "configdir.Dir{}.Apply"},
	{"configresolve/kube", "kube.Connection{}.Client"},
}

// growth is what a program has.
type growth struct{ size, packages, modules int }

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: growth CHECKOUT [OLDER]")
		os.Exit(64)
	}
	fmt.Println("| package | binary | packages of others | modules in go.mod |\n|---|---|---|---|")
	bare := make([]growth, len(os.Args)-1)
	for _, use := range uses {
		cells := make([][]string, 3)
		for i, checkout := range os.Args[1:] {
			g, err := measure(checkout, use.pkg, use.expression)
			if err != nil {
				fmt.Fprintf(os.Stderr, "%s of %s: %v\n", use.pkg, checkout, err)
				cells[0], cells[1], cells[2] = append(cells[0], "-"), append(cells[1], "-"), append(cells[2], "-")
				continue
			}
			if use.pkg == "" {
				bare[i] = g
			}
			cells[0] = append(cells[0], fmt.Sprintf("%.1f MiB", float64(g.size-bare[i].size)/(1<<20)))
			cells[1] = append(cells[1], fmt.Sprint(g.packages-bare[i].packages))
			cells[2] = append(cells[2], fmt.Sprint(g.modules-bare[i].modules))
		}
		if use.pkg != "" {
			fmt.Printf("| `%s` | %s | %s | %s |\n", use.pkg, strings.Join(cells[0], " / "), strings.Join(cells[1], " / "), strings.Join(cells[2], " / "))
		}
	}
}

func measure(checkout, pkg, expression string) (g growth, err error) {
	dir, err := os.MkdirTemp("", "growth-")
	if err != nil {
		return g, err
	}
	defer os.RemoveAll(dir)
	if checkout, err = filepath.Abs(checkout); err != nil {
		return g, err
	}
	program := "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println() }\n"
	if pkg != "" {
		program = fmt.Sprintf("package main\n\nimport (\n\t\"fmt\"\n\n\t%q\n)\n\nfunc main() { fmt.Println(%s) }\n", module+"/"+pkg, expression)
	}
	mod := fmt.Sprintf("module growth.test\n\ngo 1.25.0\n\nrequire %s v0.0.0\n\nreplace %s => %s\n", module, module, checkout)
	for name, content := range map[string]string{"main.go": program, "go.mod": mod} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return g, err
		}
	}
	for _, args := range [][]string{{"mod", "tidy"}, {"build", "-trimpath", "-ldflags=-s -w", "-o", "program"}} {
		if _, err := goIn(dir, args...); err != nil {
			return g, err
		}
	}
	info, err := os.Stat(filepath.Join(dir, "program"))
	if err != nil {
		return g, err
	}
	linked, err := goIn(dir, "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
	if err != nil {
		return g, err
	}
	for _, name := range strings.Fields(linked) {
		if !strings.HasPrefix(name, module) && name != "growth.test" {
			g.packages++
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	g.size, g.modules = int(info.Size()), strings.Count(string(raw), " v")
	return g, err
}

// goIn runs the go command in dir, for linux/amd64 and without cgo.
func goIn(dir string, args ...string) (string, error) {
	c := exec.Command("go", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOFLAGS=-mod=mod")
	out, err := c.Output()
	if exit, ok := err.(*exec.ExitError); ok {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, exit.Stderr)
	}
	return string(out), err
}
