// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cniinstall"
)

// The plugins of an agent's image, together with one from another image.
func ExampleOpenPlugins() {
	image, err := os.MkdirTemp("", "image")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(image)
	if err := os.WriteFile(filepath.Join(image, "my-cni"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		log.Fatal(err)
	}

	plugins, err := cniinstall.OpenPlugins(image)
	if err != nil {
		log.Fatal(err)
	}
	defer plugins.Close()
	install := cniinstall.Install{Plugins: plugins, BinDir: filepath.Join(image, "cni/bin"), DefaultPolicy: cniinstall.IfMissing}
	changes, err := install.Check(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.ReplaceAll(changes[len(changes)-1], image, ""))
	// Output: write /cni/bin/my-cni
}

func TestPluginFSIsAFileSystem(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(first+"/a", []byte("first"), 0o644))
	require.NoError(t, os.WriteFile(second+"/a", []byte("second"), 0o644))
	require.NoError(t, os.WriteFile(second+"/b", []byte("b"), 0o644))
	p, err := cniinstall.OpenPlugins(first, second)
	require.NoError(t, err)
	require.Equal(t, first+", "+second, p.String())
	content, err := fs.ReadFile(p, "a")
	require.NoError(t, err)
	require.Equal(t, "first", string(content))
	_, err = p.Stat("c")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, p.Close())
	_, err = fs.ReadFile(p, "a")
	require.ErrorIs(t, err, fs.ErrClosed)

	one, err := cniinstall.OpenPlugins(second)
	require.NoError(t, err)
	defer one.Close()
	require.NoError(t, fstest.TestFS(one, "a", "b"))

	_, err = new(cniinstall.PluginFS).Open("a")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = cniinstall.OpenPlugins(first, second+"/missing")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, second+"/missing")
	require.ErrorContains(t, err, "of this container's image, not of the host")
}
