// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// cpio is an archive in the form that a kernel unpacks at boot (newc). Several archives in
// sequence count as one.
type cpio struct {
	bytes.Buffer
	entries int
	made    []string // directories
}

const (
	modeDir  = 0o040755
	modeFile = 0o100755
	modeChar = 0o020600
)

func (c *cpio) entry(name string, mode int, data []byte, major, minor int) {
	c.entries++
	fmt.Fprintf(c, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X", c.entries, mode, 0, 0, 1, 0, len(data), 0, 0, major, minor, len(name)+1, 0)
	c.WriteString(name + "\x00")
	c.pad()
	c.Write(data)
	c.pad()
}

func (c *cpio) pad() { c.Write(make([]byte, -c.Len()&3)) }

func (c *cpio) dir(name string) {
	if name == "." || slices.Contains(c.made, name) {
		return
	}
	c.dir(filepath.Dir(name))
	c.made = append(c.made, name)
	c.entry(name, modeDir, nil, 0, 0)
}

func (c *cpio) file(name string, data []byte) {
	c.dir(filepath.Dir(name))
	c.entry(name, modeFile, data, 0, 0)
}

// write ends the archive.
func (c *cpio) write(file string) error {
	c.entry("TRAILER!!!", 0, nil, 0, 0)
	return os.WriteFile(file, c.Bytes(), 0o644)
}

// bootModules makes an archive of the modules that a kernel needs to find its disks, each
// file after its dependencies.
func bootModules(ctx context.Context, dir, file string) error {
	list, err := os.ReadFile(filepath.Join(dir, "modules.dep"))
	if err != nil {
		return err
	}
	needs := map[string][]string{} // by path: those it depends on, nearest first
	paths := map[string]string{}   // by name
	for line := range strings.Lines(string(list)) {
		path, depends, _ := strings.Cut(strings.TrimSpace(line), ":")
		name, _, _ := strings.Cut(filepath.Base(path), ".")
		needs[path], paths[name] = strings.Fields(depends), path
	}
	var order []string
	for _, name := range []string{"virtio_pci", "virtio_blk", "crc32c_generic", "ext4"} { // ext4 requests a checksum by name
		path, separate := paths[name]
		if !separate {
			continue // it is built into the kernel
		}
		chain := append([]string{path}, needs[path]...)
		for _, p := range slices.Backward(chain) {
			if !slices.Contains(order, p) {
				order = append(order, p)
			}
		}
	}
	var c cpio
	for n, path := range order {
		module, err := decompressed(ctx, filepath.Join(dir, path))
		if err != nil {
			return err
		}
		c.file(fmt.Sprintf("modules/%02d", n), module)
	}
	return c.write(file)
}

func decompressed(ctx context.Context, file string) ([]byte, error) {
	switch filepath.Ext(file) {
	case ".xz":
		return command(ctx, "", nil, "xz", "-dc", file)
	case ".zst":
		return command(ctx, "", nil, "zstd", "-dcq", file)
	}
	return os.ReadFile(file)
}
