// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cluster

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/verify/image"
)

// Names of the images that every node has: a shell, and one that waits.
const (
	Busybox = "slipway.test/busybox:1"
	Pause   = "slipway.test/pause:1"
)

// Plugins returns Debian's CNI plugins of these names, for an image, in dir.
func (n *Node) Plugins(dir string, names ...string) (files []image.File, err error) {
	for _, name := range names {
		content, err := n.programs.file(filepath.Join("usr/lib/cni", name))
		if err != nil {
			return nil, err
		}
		files = append(files, image.File{Path: dir + "/" + name, Mode: 0o755, Content: content})
	}
	return files, nil
}

// Shell returns busybox and the names that it is called by, for an image.
func (n *Node) Shell() ([]image.File, error) {
	var content []byte
	var err error
	for _, directory := range []string{"bin", "usr/bin"} { // Debian moved it
		if content, err = n.programs.file(directory + "/busybox"); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	list, err := exec.Command(filepath.Join(n.path(binDir), "busybox"), "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("list the names of busybox: %w", err)
	}
	files := []image.File{
		{Path: "/bin/busybox", Mode: 0o755, Content: content},
		{Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
	}
	for name := range strings.FieldsSeq(string(list)) {
		if name != "busybox" {
			files = append(files, image.File{Path: "/bin/" + name, Link: "busybox"})
		}
	}
	return files, nil
}

// Import gives all nodes an image of these files. Pods name it with imagePullPolicy Never.
func (c *Cluster) Import(ctx context.Context, name string, entrypoint []string, files ...image.File) error {
	var archive bytes.Buffer
	if err := image.WriteArchive(&archive, name, image.Image{
		Architecture: runtime.GOARCH, Files: slices.Clone(files), Entrypoint: entrypoint,
		Env: []string{"PATH=/usr/bin:/bin"}, Compression: gzip.HuffmanOnly, // the soonest
	}); err != nil {
		return err
	}
	return c.ImportArchive(ctx, name, archive.Bytes())
}

// ImportArchive gives all nodes an image as it was written by package image.
func (c *Cluster) ImportArchive(ctx context.Context, name string, archive []byte) error {
	c.images = append(c.images, archive)
	for _, n := range c.Nodes {
		if err := n.load(ctx, archive); err != nil {
			return fmt.Errorf("import image %s: %w", name, err)
		}
	}
	return nil
}

func (n *Node) load(ctx context.Context, archives ...[]byte) error {
	for _, archive := range archives {
		cmd := exec.CommandContext(ctx, "ctr", "--namespace", "k8s.io", "images", "import", "-")
		cmd.Stdin = bytes.NewReader(archive)
		if _, err := n.Output(cmd); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) importBasics(ctx context.Context) error {
	files, err := c.Shell()
	if err != nil {
		return err
	}
	if err := c.Import(ctx, Pause, []string{"/bin/sh", "-c", "trap 'exit 0' TERM; sleep infinity & wait"}, files...); err != nil {
		return err
	}
	return c.Import(ctx, Busybox, []string{"/bin/sh"}, files...)
}
