// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package image_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/image"
)

func sample(arch string) image.Image {
	return image.Image{
		Architecture: arch,
		Files: []image.File{
			{Path: "/usr/bin/agent", Mode: 0o755, Content: []byte("program for " + arch)},
			{Path: "/bin/sh", Link: "busybox"},
			{Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		},
		Entrypoint: []string{"/usr/bin/agent"},
		Env:        []string{"PATH=/usr/bin"},
	}
}

// checkImage holds each part against its digest and size, and looks at the files.
func checkImage(t *testing.T, i v1.Image, arch string) {
	t.Helper()
	require.NoError(t, validate.Image(i))
	config, err := i.ConfigFile()
	require.NoError(t, err)
	require.Equal(t, v1.Platform{OS: "linux", Architecture: arch}, *config.Platform())
	require.Equal(t, []string{"/usr/bin/agent"}, config.Config.Entrypoint)
	require.Equal(t, []string{"PATH=/usr/bin"}, config.Config.Env)
	layers, err := i.Layers()
	require.NoError(t, err)
	require.Len(t, layers, 1)
	raw, err := layers[0].Uncompressed()
	require.NoError(t, err)
	require.Equal(t, []string{
		"drwxr-xr-x bin/ ", "Lrwxrwxrwx bin/sh busybox", "dtrwxrwxrwx tmp/ ", "drwxr-xr-x usr/ ", "drwxr-xr-x usr/bin/ ",
		"-rwxr-xr-x usr/bin/agent program for " + arch,
	}, listing(t, raw))
}

func listing(t *testing.T, raw io.Reader) (lines []string) {
	t.Helper()
	r := tar.NewReader(raw)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return lines
		}
		require.NoError(t, err)
		content, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Zero(t, h.Uid+h.Gid)
		require.Zero(t, h.ModTime.Unix())
		lines = append(lines, fmt.Sprintf("%s %s %s%s", h.FileInfo().Mode(), h.Name, h.Linkname, content))
	}
}

func TestALayoutHoldsEachPlatform(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "oci")
	require.NoError(t, image.WriteLayout(dir, "example.com/agent:1", sample("amd64"), sample("arm64")))
	outer, err := layout.ImageIndexFromPath(dir)
	require.NoError(t, err)
	require.NoError(t, validate.Index(outer))
	top, err := outer.IndexManifest()
	require.NoError(t, err)
	require.Len(t, top.Manifests, 1)
	require.Equal(t, map[string]string{
		"org.opencontainers.image.ref.name": "1", "io.containerd.image.name": "example.com/agent:1",
	}, top.Manifests[0].Annotations)
	inner, err := outer.ImageIndex(top.Manifests[0].Digest)
	require.NoError(t, err)
	platforms, err := inner.IndexManifest()
	require.NoError(t, err)
	require.Equal(t, types.OCIImageIndex, platforms.MediaType)
	require.Len(t, platforms.Manifests, 2)
	for n, arch := range []string{"amd64", "arm64"} {
		d := platforms.Manifests[n]
		require.Equal(t, v1.Platform{OS: "linux", Architecture: arch}, *d.Platform)
		require.Equal(t, types.OCIManifestSchema1, d.MediaType)
		i, err := inner.Image(d.Digest)
		require.NoError(t, err)
		checkImage(t, i, arch)
		manifest, err := i.Manifest()
		require.NoError(t, err)
		require.Equal(t, types.OCIConfigJSON, manifest.Config.MediaType)
		require.Equal(t, types.OCILayer, manifest.Layers[0].MediaType)
	}
	require.ErrorIs(t, image.WriteLayout(dir, "example.com/agent:1", sample("amd64")), fs.ErrExist, "an existing layout is not added to")
}

func TestAnArchiveIsTheSameEachTime(t *testing.T) {
	var out, again bytes.Buffer
	require.NoError(t, image.WriteArchive(&out, "agent:1", sample("arm64")))
	require.NoError(t, image.WriteArchive(&again, "agent:1", sample("arm64")))
	require.Equal(t, out.Bytes(), again.Bytes())
	path := filepath.Join(t.TempDir(), "agent.tar")
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o644))
	i, err := tarball.ImageFromPath(path, nil)
	require.NoError(t, err)
	checkImage(t, i, "arm64")
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(path) })
	require.NoError(t, err)
	require.Equal(t, []string{"agent:1"}, manifest[0].RepoTags, "the name is kept as given")
}
