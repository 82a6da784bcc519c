// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command pack makes the images of nodeinit: an OCI image layout of all
// platforms in the directory oci, and an archive for each platform, which docker
// load, podman load and ctr images import read. It needs Go and nothing else.
//
// Built twice from the same files by the same Go, they are the same.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/internal/verify/image"
	"github.com/slipway-dev/slipway/internal/verify/image/licences"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	p := packer{}
	flag.StringVar(&p.dir, "o", "../../../bin/image", "directory to write to; what pack wrote there before is replaced")
	flag.StringVar(&p.source, "source", "../../..", "directory of nodeinit's module")
	flag.StringVar(&p.name, "name", "slipway/nodeinit:latest", "name and tag of the image")
	architectures := flag.String("arch", "amd64,arm64", "architectures, separated by commas")
	flag.Parse()
	if err := p.run(ctx, strings.Split(*architectures, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

type packer struct{ dir, source, name string }

func (p packer) run(ctx context.Context, architectures []string) error {
	layout := filepath.Join(p.dir, "oci")
	if err := os.RemoveAll(layout); err != nil {
		return err
	}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	var all []image.Image
	for _, arch := range architectures {
		one, err := p.nodeinit(ctx, arch)
		if err != nil {
			return fmt.Errorf("image for %s: %w", arch, err)
		}
		if err := p.archive(arch, one); err != nil {
			return err
		}
		all = append(all, one)
	}
	if err := image.WriteLayout(layout, p.name, all...); err != nil {
		return err
	}
	fmt.Printf("%s\n", layout)
	return nil
}

func (p packer) archive(arch string, one image.Image) error {
	var out bytes.Buffer
	if err := image.WriteArchive(&out, p.name, one); err != nil {
		return err
	}
	path := filepath.Join(p.dir, "nodeinit-"+arch+".tar")
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		return err
	}
	fmt.Printf("%s %.1f MiB\n", path, float64(out.Len())/(1<<20))
	return nil
}

func (p packer) nodeinit(ctx context.Context, arch string) (image.Image, error) {
	const pkg = "./examples/nodeinit"
	program, err := image.Build(ctx, p.source, pkg, arch)
	if err != nil {
		return image.Image{}, err
	}
	linked, err := licences.Of(ctx, p.source, pkg, arch, program)
	if err != nil {
		return image.Image{}, err
	}
	licence, err := os.ReadFile(filepath.Join(p.source, "LICENSE"))
	if err != nil {
		return image.Image{}, err
	}
	return image.OfProgram(arch, "nodeinit", program, licence, licences.Text(linked)), nil
}
