// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// lockMain is what internal/verify/faults adds to nodeinit.
const lockMain = `package main

import (
	"os"
	"runtime"
)

func init() {
	runtime.LockOSThread()
	os.Exit(run())
}
`

// build makes what a virtual machine starts with, and an image of the tests of packages
// (none: an empty one) with their sources and the programs that tests build: there is no
// go command in the virtual machines.
func (m *machines) build(ctx context.Context, kernels, packages []string) (err error) {
	fmt.Println("building nodeinit and the tests")
	if m.images, err = m.work(); err != nil {
		return err
	}
	mod, err := command(ctx, "", nil, "go", "env", "GOMOD")
	if err != nil {
		return err
	}
	b := &builder{ctx: ctx, root: filepath.Dir(strings.TrimSpace(string(mod))), out: filepath.Join(m.images, "tree")}
	for _, dir := range []string{"bin", "tests", "go"} {
		if err := os.MkdirAll(filepath.Join(b.out, dir), 0o755); err != nil {
			return err
		}
	}
	for _, kernel := range kernels {
		if err := b.initial(m, architecture(kernel)); err != nil {
			return err
		}
	}
	if len(packages) > 0 {
		if err := errors.Join(b.programs(), b.tests(packages), b.sources()); err != nil {
			return err
		}
	}
	return errors.Join(image(ctx, b.out, filepath.Join(m.images, "tests.image"), 1200), os.RemoveAll(b.out))
}

// close removes what was built for this run.
func (m *machines) close() {
	if m.images != "" {
		_ = os.RemoveAll(m.images)
	}
}

type builder struct {
	ctx       context.Context
	root, out string
}

func (b *builder) goCommand(arch, dir string, args ...string) error {
	_, err := command(b.ctx, dir, []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + arch, "GOFLAGS=", "GOWORK=off"}, "go", args...)
	return err
}

// initial makes the archive with which a virtual machine starts: its pid 1, nodeinit,
// and, where there is no Debian, a shell.
func (b *builder) initial(m *machines, arch string) error {
	archive := filepath.Join(m.images, "initial-"+arch+".cpio")
	if _, err := os.Stat(archive); err == nil {
		return nil
	}
	guest, nodeinit := filepath.Join(m.images, "guest"), filepath.Join(m.images, "nodeinit")
	if err := errors.Join(
		b.goCommand(arch, b.root, "build", "-trimpath", "-o", guest, "./internal/verify/realkernels/guest"),
		b.goCommand(arch, b.root, "build", "-trimpath", "-ldflags=-s -w", "-o", nodeinit, "./examples/nodeinit"),
	); err != nil {
		return err
	}
	files := map[string]string{"init": guest, "bin/nodeinit": nodeinit}
	if arch == arm64 {
		busybox, err := one(m.path("busybox", "usr/bin/busybox"), m.path("busybox", "bin/busybox"))
		if err != nil {
			return err
		}
		files["bin/busybox"] = busybox
	}
	var c cpio
	for _, dir := range []string{"dev", "proc", "new"} {
		c.dir(dir)
	}
	c.entry("dev/console", modeChar, nil, 5, 1)
	for name, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		c.file(name, data)
	}
	return c.write(archive)
}

// programs builds what tests build; guest, as go, hands it out.
func (b *builder) programs() error {
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(b.root, "examples/nodeinit/lockmain.go"): filepath.Join(b.out, "lockmain.go"),
	}})
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(b.out, "lockmain.go"), []byte(lockMain), 0o644),
		os.WriteFile(filepath.Join(b.out, "overlay.json"), overlay, 0o644),
		b.goCommand("amd64", b.root, "build", "-trimpath", "-o", filepath.Join(b.out, "go/go"), "./internal/verify/realkernels/guest"),
		b.goCommand("amd64", b.root, "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(b.out, "bin/nodeinit"), "./examples/nodeinit"),
		b.goCommand("amd64", b.root, "build", "-trimpath", "-overlay", filepath.Join(b.out, "overlay.json"), "-o", filepath.Join(b.out, "bin/nodeinit-locked"), "./examples/nodeinit"),
		b.goCommand("amd64", b.root, "build", "-trimpath", "-o", filepath.Join(b.out, "bin/agent"), "./examples/agent"),
		b.goCommand("amd64", b.root, "build", "-trimpath", "-o", filepath.Join(b.out, "bin/attack"), "./internal/verify/attack"),
		b.goCommand("amd64", b.root, "build", "-trimpath", "-o", filepath.Join(b.out, "bin/standin"), "./internal/verify/layouts/standin"),
		b.goCommand("amd64", b.root, "build", "-trimpath", "-o", filepath.Join(b.out, "bin/downstream"), "./internal/verify/downstream"),
	)
}

// tests builds the packages' tests, and lists them in the order in which they run.
func (b *builder) tests(packages []string) error {
	args := append([]string{"list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}"}, packages...)
	list, err := command(b.ctx, b.root, []string{"GOOS=linux", "GOARCH=amd64"}, "go", args...)
	if err != nil {
		return err
	}
	var order strings.Builder
	for line := range strings.Lines(string(list)) {
		path, dir, found := strings.Cut(strings.TrimSpace(line), " ")
		if !found {
			continue
		}
		name, err := filepath.Rel(b.root, dir)
		if err != nil {
			return err
		}
		binary := filepath.Join(b.out, "tests", name, "test")
		if err := errors.Join(os.MkdirAll(filepath.Dir(binary), 0o755), b.goCommand("amd64", b.root, "test", "-c", "-ldflags=-s -w", "-o", binary, path)); err != nil {
			return err
		}
		order.WriteString(name + "\n")
	}
	return os.WriteFile(filepath.Join(b.out, "tests/order"), []byte(order.String()), 0o644)
}

// sources copies the tree, for testdata and for tests that read sources.
func (b *builder) sources() error {
	list, err := command(b.ctx, b.root, nil, "git", "ls-files", "-z")
	if err != nil {
		return err
	}
	for _, name := range strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		to := filepath.Join(b.out, "src", name)
		info, err := os.Stat(filepath.Join(b.root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			return err
		}
		data, err := os.ReadFile(filepath.Join(b.root, name))
		if err != nil {
			return err
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, info.Mode().Perm())); err != nil {
			return err
		}
	}
	return nil
}
