// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package image

import (
	"archive/tar"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// file is one of a layout's.
type file struct {
	name    string
	content []byte
}

// WriteLayout makes an OCI image layout in the directory, which must not be
// there: one image by the given name, such as example.com/agent:1, for each
// platform of images.
func WriteLayout(dir, name string, images ...Image) error {
	files, _, err := layout(name, images)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("write image layout: %w", err)
	}
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write image layout: %w", err)
		}
		if err := os.WriteFile(path, f.content, 0o644); err != nil {
			return fmt.Errorf("write image layout: %w", err)
		}
	}
	return nil
}

// WriteArchive writes an image as docker save does since version 25: a tar that
// is an OCI image layout, and has manifest.json for readers that know no such.
func WriteArchive(w io.Writer, name string, i Image) error {
	files, all, err := layout(name, []Image{i})
	if err != nil {
		return err
	}
	docker, err := encode("manifest.json", []dockerManifest{{
		Config: all[0].config.path(), RepoTags: []string{name}, Layers: []string{all[0].layer.path()},
	}})
	if err != nil {
		return err
	}
	out := tar.NewWriter(w)
	for _, f := range append(files, file{"manifest.json", docker.content}) {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: 0o644, Size: int64(len(f.content)), ModTime: time.Unix(0, 0)}
		if err := out.WriteHeader(h); err != nil {
			return fmt.Errorf("write image archive: %w", err)
		}
		if _, err := out.Write(f.content); err != nil {
			return fmt.Errorf("write image archive: %w", err)
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("write image archive: %w", err)
	}
	return nil
}

// layout returns the files of a layout. Several platforms are one index below
// the layout's own.
func layout(name string, images []Image) ([]file, []*built, error) {
	_, tag, tagged := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
	if !tagged {
		return nil, nil, fmt.Errorf("image name %q has no tag", name)
	}
	files := []file{{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)}}
	var all []*built
	var platforms []descriptor
	for _, i := range images {
		b, err := i.build()
		if err != nil {
			return nil, nil, err
		}
		all = append(all, b)
		d := b.manifest.descriptor()
		d.Platform = &b.platform
		platforms = append(platforms, d)
		for _, part := range []blob{b.layer, b.config, b.manifest} {
			files = append(files, file{part.path(), part.content})
		}
	}
	top := platforms[0]
	if len(platforms) > 1 {
		inner, err := encode(typeIndex, index{2, typeIndex, platforms})
		if err != nil {
			return nil, nil, err
		}
		files = append(files, file{inner.path(), inner.content})
		top = inner.descriptor()
	}
	top.Annotations = map[string]string{annotationTag: tag, annotationName: name}
	outer, err := encode(typeIndex, index{2, typeIndex, []descriptor{top}})
	if err != nil {
		return nil, nil, err
	}
	return append(files, file{"index.json", outer.content}), all, nil
}
