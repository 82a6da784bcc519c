// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package image writes container images from files, without a registry and
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
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// Image is an image of one layer, for Linux.
type Image struct {
	Architecture string // as GOARCH says it
	Files        []File // folders above them are made, 0755
	Entrypoint   []string
	Env          []string // NAME=VALUE
	Labels       map[string]string
	Compression  int // as in compress/gzip; zero: the best
}

// File is a regular file, a folder or a symbolic link in an image.
type File struct {
	Path    string // absolute
	Mode    fs.FileMode
	Content []byte
	Link    string // where a symbolic link points
}

// blob is one of the content-addressed parts of an image.
type blob struct {
	mediaType string
	content   []byte
}

// built is an image ready to be written.
type built struct {
	platform                platform
	manifest, config, layer blob
}

func (i Image) build() (*built, error) {
	raw, err := i.tar()
	if err != nil {
		return nil, fmt.Errorf("make the layer for %s: %w", i.Architecture, err)
	}
	compressed, err := i.compress(raw)
	if err != nil {
		return nil, fmt.Errorf("compress the layer for %s: %w", i.Architecture, err)
	}
	b := &built{platform: platform{Architecture: i.Architecture, OS: "linux"}, layer: blob{typeLayer, compressed}}
	epoch := time.Unix(0, 0).UTC()
	if b.config, err = encode(typeConfig, config{
		Created: epoch, platform: b.platform,
		Config:  settings{Entrypoint: i.Entrypoint, Env: i.Env, Labels: i.Labels, WorkingDir: "/"},
		RootFS:  rootFS{Type: "layers", DiffIDs: []string{digest(raw)}},
		History: []history{{Created: epoch, CreatedBy: "files"}},
	}); err != nil {
		return nil, err
	}
	b.manifest, err = encode(typeManifest, manifest{
		SchemaVersion: 2, MediaType: typeManifest, Config: b.config.descriptor(), Layers: []descriptor{b.layer.descriptor()},
	})
	return b, err
}

func (i Image) compress(raw []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, cmp.Or(i.Compression, gzip.BestCompression))
	if err != nil {
		return nil, err
	}
	_, err = w.Write(raw)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

func (i Image) tar() ([]byte, error) {
	all := map[string]File{}
	for _, f := range i.Files {
		if !path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path || f.Path == "/" {
			return nil, fmt.Errorf("%q is no clean absolute path of a file", f.Path)
		}
		if _, twice := all[f.Path]; twice {
			return nil, fmt.Errorf("%s is there twice", f.Path)
		}
		all[f.Path] = f
	}
	for _, f := range i.Files {
		for dir := path.Dir(f.Path); dir != "/"; dir = path.Dir(dir) {
			if _, there := all[dir]; !there {
				all[dir] = File{Path: dir, Mode: fs.ModeDir | 0o755}
			}
		}
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := add(w, all[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

func add(w *tar.Writer, f File) error {
	h := &tar.Header{Name: strings.TrimPrefix(f.Path, "/"), Mode: int64(f.Mode.Perm()), ModTime: time.Unix(0, 0)}
	if f.Mode&fs.ModeSticky != 0 {
		h.Mode |= 0o1000
	}
	switch {
	case f.Link != "":
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, f.Link, 0o777
	case f.Mode.IsDir():
		h.Typeflag = tar.TypeDir
		h.Name += "/"
	default:
		h.Typeflag, h.Size = tar.TypeReg, int64(len(f.Content))
	}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err := w.Write(f.Content)
	return err
}
