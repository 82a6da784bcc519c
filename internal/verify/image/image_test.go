// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package image_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

// part is a descriptor, read as somebody else would.
type part struct {
	MediaType, Digest string
	Size              int
	Platform          struct{ Architecture, OS string }
	Annotations       map[string]string
}

// open reads what d names, and holds it against digest and size.
func open(t *testing.T, layout fs.FS, d part, into any) []byte {
	t.Helper()
	raw, err := fs.ReadFile(layout, "blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:"))
	require.NoError(t, err)
	require.Len(t, raw, d.Size)
	require.Equal(t, d.Digest, fmt.Sprintf("sha256:%x", sha256.Sum256(raw)))
	if into != nil {
		require.NoError(t, json.Unmarshal(raw, into))
	}
	return raw
}

// checkImage follows a manifest to the files of its layer.
func checkImage(t *testing.T, layout fs.FS, d part) {
	t.Helper()
	var manifest struct {
		Config part
		Layers []part
	}
	open(t, layout, d, &manifest)
	var config struct {
		Architecture, OS string
		Config           struct{ Entrypoint, Env []string }
		RootFS           struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	open(t, layout, manifest.Config, &config)
	require.Equal(t, d.Platform.Architecture, config.Architecture)
	require.Equal(t, []string{"/usr/bin/agent"}, config.Config.Entrypoint)
	require.Len(t, manifest.Layers, 1)
	zipped, err := gzip.NewReader(bytes.NewReader(open(t, layout, manifest.Layers[0], nil)))
	require.NoError(t, err)
	raw, err := io.ReadAll(zipped)
	require.NoError(t, err)
	require.Equal(t, []string{fmt.Sprintf("sha256:%x", sha256.Sum256(raw))}, config.RootFS.DiffIDs)
	require.Equal(t, []string{
		"drwxr-xr-x bin/ ", "Lrwxrwxrwx bin/sh busybox", "dtrwxrwxrwx tmp/ ", "drwxr-xr-x usr/ ", "drwxr-xr-x usr/bin/ ",
		"-rwxr-xr-x usr/bin/agent program for " + config.Architecture,
	}, listing(t, raw))
}

func listing(t *testing.T, raw []byte) (lines []string) {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(raw))
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
	layout := os.DirFS(dir)
	var outer, inner struct{ Manifests []part }
	raw, err := fs.ReadFile(layout, "index.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &outer))
	require.Len(t, outer.Manifests, 1)
	require.Equal(t, "1", outer.Manifests[0].Annotations["org.opencontainers.image.ref.name"])
	open(t, layout, outer.Manifests[0], &inner)
	require.Len(t, inner.Manifests, 2)
	for i, arch := range []string{"amd64", "arm64"} {
		require.Equal(t, arch, inner.Manifests[i].Platform.Architecture)
		require.Equal(t, "linux", inner.Manifests[i].Platform.OS)
		checkImage(t, layout, inner.Manifests[i])
	}
	require.ErrorIs(t, image.WriteLayout(dir, "example.com/agent:1", sample("amd64")), fs.ErrExist, "nothing is mixed with what is there")
}

// One archive is read by those who know layouts and by those who know docker's.
func TestAnArchiveIsALayoutAndDockers(t *testing.T) {
	var out, again bytes.Buffer
	require.NoError(t, image.WriteArchive(&out, "example.com/agent:1", sample("arm64")))
	require.NoError(t, image.WriteArchive(&again, "example.com/agent:1", sample("arm64")))
	require.Equal(t, out.Bytes(), again.Bytes(), "the same bytes each time")
	dir := t.TempDir()
	unpack(t, dir, out.Bytes())
	layout := os.DirFS(dir)
	var index struct{ Manifests []part }
	raw, err := fs.ReadFile(layout, "index.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &index))
	require.Len(t, index.Manifests, 1)
	require.Equal(t, "example.com/agent:1", index.Manifests[0].Annotations["io.containerd.image.name"])
	checkImage(t, layout, index.Manifests[0])

	var docker []struct {
		Config           string
		RepoTags, Layers []string
	}
	raw, err = fs.ReadFile(layout, "manifest.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &docker))
	require.Len(t, docker, 1)
	require.Equal(t, []string{"example.com/agent:1"}, docker[0].RepoTags)
	for _, name := range append(docker[0].Layers, docker[0].Config) {
		require.FileExists(t, filepath.Join(dir, name))
	}
}

func unpack(t *testing.T, dir string, archive []byte) {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		require.NoError(t, err)
		content, err := io.ReadAll(r)
		require.NoError(t, err)
		path := filepath.Join(dir, h.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, content, 0o644))
	}
}

func TestWhatIsNoImageIsRefused(t *testing.T) {
	for want, change := range map[string]func(*image.Image){
		`"bin/x" is no clean absolute path`:   func(i *image.Image) { i.Files[0].Path = "bin/x" },
		`"/a/../b" is no clean absolute path`: func(i *image.Image) { i.Files[0].Path = "/a/../b" },
		"/bin/sh is there twice":              func(i *image.Image) { i.Files[0].Path = "/bin/sh" },
		"compress the layer for amd64":        func(i *image.Image) { i.Compression = 77 },
	} {
		i := sample("amd64")
		change(&i)
		require.ErrorContains(t, image.WriteArchive(io.Discard, "example.com/agent:1", i), want)
	}
	require.ErrorContains(t, image.WriteArchive(io.Discard, "example.com:5000/agent", sample("amd64")), "has no tag")
}
