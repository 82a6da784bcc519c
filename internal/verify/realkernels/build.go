// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/internal/verify/faults"
	"github.com/slipway-dev/slipway/internal/verify/programs"
)

// Programs of this repository: pid 1 of the virtual machines, and the programs that run
// there.
var (
	guest    = programs.Program{Package: "./internal/verify/realkernels/guest"}
	nodeinit = programs.Program{Package: "./examples/nodeinit"}
)

// built are the programs that tests build, by their paths: guest, as go, hands them out.
var built = map[string]programs.Program{
	"go/go": guest, "bin/nodeinit": nodeinit, "bin/nodeinit-locked": faults.Nodeinit,
	"bin/agent":   {Package: "./examples/agent"},
	"bin/attack":  {Package: "./internal/verify/attack"},
	"bin/standin": {Package: "./internal/verify/layouts/standin"},
}

// build makes the initial archive of a virtual machine, and an image of the tests of
// packages (empty if there are none) with their sources and the programs that tests
// build: there is no go command in the virtual machines.
func (m *machines) build(ctx context.Context, kernels, packages []string) (err error) {
	fmt.Println("building nodeinit and the tests")
	if m.images, err = m.work(); err != nil {
		return err
	}
	root, err := programs.Root()
	if err != nil {
		return err
	}
	for _, kernel := range kernels {
		b := &builder{ctx: ctx, root: root, arch: architecture(kernel), out: filepath.Join(m.images, "tree")}
		if err := b.all(m, packages); err != nil {
			return err
		}
	}
	return nil
}

// all builds for the builder's architecture, once.
func (b *builder) all(m *machines, packages []string) error {
	tests := filepath.Join(m.images, "tests-"+b.arch+".image")
	if _, err := os.Stat(tests); err == nil {
		return nil
	}
	for _, dir := range []string{"bin", "tests", "go"} {
		if err := os.MkdirAll(filepath.Join(b.out, dir), 0o755); err != nil {
			return err
		}
	}
	err := b.initial(filepath.Join(m.images, "initial-"+b.arch+".cpio"))
	if len(packages) > 0 {
		err = errors.Join(err, b.programs(), b.tests(packages), b.sources())
	}
	return errors.Join(err, image(b.ctx, b.out, tests, 1200), os.RemoveAll(b.out))
}

// close removes the files built for this run.
func (m *machines) close() {
	if m.images != "" {
		_ = os.RemoveAll(m.images)
	}
}

type builder struct {
	ctx             context.Context
	root, arch, out string
}

// goCommand builds for the virtual machines.
func (b *builder) goCommand(dir string, args ...string) error {
	return programs.Go(b.ctx, io.Discard, dir, b.env(), args...)
}

func (b *builder) env() []string { return []string{"GOOS=linux", "GOARCH=" + b.arch} }

// initial makes the archive with which a virtual machine starts: its pid 1 and nodeinit.
func (b *builder) initial(archive string) error {
	files := map[string]string{}
	for name, p := range map[string]programs.Program{"init": guest, "bin/nodeinit": nodeinit} {
		p.Arch = b.arch
		var err error
		if files[name], err = p.Build(b.ctx); err != nil {
			return err
		}
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

// programs builds the programs that tests build.
func (b *builder) programs() error {
	for place, p := range built {
		p.Arch = b.arch
		path, err := p.Build(b.ctx)
		if err == nil {
			err = copyFile(path, filepath.Join(b.out, place), 0o755)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tests builds the packages' tests, and lists them in the order in which they run.
func (b *builder) tests(packages []string) error {
	args := append([]string{"list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}"}, packages...)
	list, err := command(b.ctx, b.root, b.env(), "go", args...)
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
		if err := errors.Join(os.MkdirAll(filepath.Dir(binary), 0o755), b.goCommand(b.root, "test", "-c", "-ldflags=-s -w", "-o", binary, path)); err != nil {
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
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), copyFile(filepath.Join(b.root, name), to, info.Mode().Perm())); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string, mode os.FileMode) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, mode)
}
