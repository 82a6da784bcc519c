// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package image makes container images from files, without a registry and
// without a container engine: as an OCI image layout, for several platforms, and
// as the archive that docker load, podman load and ctr images import read.
//
// The same content gives the same bytes: times are zero, owners are root, and
// the order is that of the paths. An image is held in memory.
package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing/fstest"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image is an image of one layer, for Linux.
type Image struct {
	Architecture string // as GOARCH says it
	Files        []File // directories above them are made, 0755
	Entrypoint   []string
	Env          []string // NAME=VALUE
	Labels       map[string]string
	Compression  int // as in compress/gzip; zero: the best
}

// File is a regular file, a directory or a symbolic link in an image.
type File struct {
	Path    string // absolute
	Mode    fs.FileMode
	Content []byte
	Link    string // where a symbolic link points
}

// Annotations of an image in a layout: the former is a tag by the OCI's
// specification, the latter a whole name, which containerd reads.
const (
	annotationTag  = "org.opencontainers.image.ref.name"
	annotationName = "io.containerd.image.name"
)

// WriteLayout makes an OCI image layout in the directory, which must not be
// there: one image by the given name, such as example.com/agent:1, for each
// platform of images.
func WriteLayout(dir, reference string, images ...Image) error {
	tag, err := parse(reference)
	if err != nil {
		return err
	}
	index := v1.ImageIndex(empty.Index)
	for _, i := range images {
		built, err := i.build()
		if err != nil {
			return err
		}
		platform := &v1.Platform{OS: "linux", Architecture: i.Architecture}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: built, Descriptor: v1.Descriptor{Platform: platform}})
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("write image layout: %w", err)
	}
	top, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = top.AppendIndex(index, layout.WithAnnotations(map[string]string{annotationTag: tag.TagStr(), annotationName: reference}))
	}
	if err != nil {
		return fmt.Errorf("write image layout: %w", err)
	}
	return nil
}

// WriteArchive writes an image as docker save did before version 25: the form that
// every reader of images knows.
func WriteArchive(w io.Writer, reference string, i Image) error {
	tag, err := parse(reference)
	if err != nil {
		return err
	}
	built, err := i.build()
	if err != nil {
		return err
	}
	if err := tarball.Write(tag, built, w); err != nil {
		return fmt.Errorf("write image archive: %w", err)
	}
	return nil
}

func parse(reference string) (name.Tag, error) {
	tag, err := name.NewTag(reference, name.WithDefaultTag(""))
	if err == nil && tag.TagStr() == "" {
		err = fmt.Errorf("image name %q has no tag", reference)
	}
	return tag, err
}

func (i Image) build() (v1.Image, error) {
	raw, err := Tar(i.Files)
	if err != nil {
		return nil, fmt.Errorf("make the layer for %s: %w", i.Architecture, err)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressionLevel(cmp.Or(i.Compression, gzip.BestCompression)), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("compress the layer for %s: %w", i.Architecture, err)
	}
	epoch := v1.Time{Time: time.Unix(0, 0).UTC()}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	built, err := mutate.ConfigFile(base, &v1.ConfigFile{
		Architecture: i.Architecture, OS: "linux", Created: epoch, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{Entrypoint: i.Entrypoint, Env: i.Env, Labels: i.Labels, WorkingDir: "/"},
	})
	if err == nil {
		built, err = mutate.Append(built, mutate.Addendum{Layer: layer, History: v1.History{Created: epoch, CreatedBy: "files"}})
	}
	if err != nil {
		return nil, fmt.Errorf("make the image for %s: %w", i.Architecture, err)
	}
	return built, nil
}

// Tar returns files as an archive. Of files in memory, AddFS writes no time and no owner,
// in the order of their paths.
func Tar(files []File) ([]byte, error) {
	all := fstest.MapFS{}
	for _, f := range files {
		inside, absolute := strings.CutPrefix(f.Path, "/")
		if !absolute || !fs.ValidPath(inside) || inside == "." {
			return nil, fmt.Errorf("%q is no clean absolute path of a file", f.Path)
		}
		if all[inside] != nil {
			return nil, fmt.Errorf("%s occurs twice", f.Path)
		}
		all[inside] = &fstest.MapFile{Mode: f.Mode, Data: f.Content}
		if f.Link != "" {
			all[inside] = &fstest.MapFile{Mode: fs.ModeSymlink | 0o777, Data: []byte(f.Link)}
		}
	}
	for _, f := range files {
		for dir := path.Dir(f.Path)[1:]; dir != ""; dir = path.Dir("/" + dir)[1:] {
			if all[dir] == nil {
				all[dir] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
			}
		}
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	err := errors.Join(w.AddFS(all), w.Close())
	return out.Bytes(), err
}
