// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/code"
)

func TestCNI8_TheAgentsOwnConfigurationStaysForSandboxes(t *testing.T) {
	n := newNode(t)
	results := filepath.Join(n.root, "results")
	conf := []byte(`{"cniVersion":"1.0.0","name":"acme","plugins":[{"type":"acme-cni"}]}`)
	c := cniinstall.AgentConf{ConfName: "05-acme.conflist", Uninstall: cniinstall.Uninstall{ConfDir: n.conf, Results: results}}
	path := filepath.Join(n.conf, c.ConfName)
	unneeded := func() {
		t.Helper()
		require.NoError(t, c.Undo(t.Context()))
	}
	unneeded() // the directory does not exist
	require.NoError(t, os.MkdirAll(n.conf, 0o755))
	unneeded()

	require.NoError(t, os.WriteFile(path, conf, 0o600))
	other := filepath.Join(n.conf, "10-other.conflist")
	require.NoError(t, os.WriteFile(other, conf, 0o600))
	require.NoError(t, c.Apply(t.Context()))
	changes, err := c.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, changes)
	changes, err = c.CheckUndo(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"remove file " + path}, changes)

	require.NoError(t, os.Mkdir(results, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(results, "a"), cached(t, "a", "acme", conf), 0o600))
	err = c.Undo(t.Context())
	require.ErrorIs(t, err, cniinstall.ErrInUse)
	require.ErrorContains(t, err, path+" is kept: sandboxes need it for their deletion: 1, by "+results)
	require.Equal(t, "cni.in-use", code.Of(err))
	require.FileExists(t, path)

	c.Uninstall.Force = true
	done, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, c.Undo(done), context.Canceled)
	require.FileExists(t, path)
	require.NoError(t, c.Undo(t.Context()))
	require.NoFileExists(t, path)
	require.FileExists(t, other)
	unneeded()
}

func TestSEC1_TheAgentsOwnConfigurationIsAFileOfOneDirectory(t *testing.T) {
	n := newNode(t)
	require.NoError(t, os.MkdirAll(n.conf, 0o755))
	theirs := filepath.Join(n.root, "theirs")
	require.NoError(t, os.WriteFile(theirs, nil, 0o600))
	require.NoError(t, os.Symlink(theirs, filepath.Join(n.conf, "link.conf")))
	require.NoError(t, os.Mkdir(filepath.Join(n.conf, "directory.conf"), 0o755))
	for name, c := range map[string]struct {
		dir, file, says string
	}{
		"a link":          {n.conf, "link.conf", "link.conf is no regular file"},
		"a directory":     {n.conf, "directory.conf", "directory.conf is no regular file"},
		"elsewhere":       {n.conf, "../../theirs.conf", "no runtime loads"},
		"no name":         {n.conf, "", "no runtime loads"},
		"nothing of CNI":  {n.conf, "passwd", "no runtime loads"},
		"the system's":    {"/etc", "a.conf", "CNI directory /etc is the system's"},
		"a relative path": {"net.d", "a.conf", "is not an absolute path"},
	} {
		t.Run(name, func(t *testing.T) {
			conf := cniinstall.AgentConf{ConfName: c.file, Uninstall: cniinstall.Uninstall{ConfDir: c.dir}}
			require.ErrorContains(t, conf.Undo(t.Context()), c.says)
			_, err := conf.Check(t.Context())
			require.True(t, err == nil || strings.Contains(err.Error(), c.says), err)
		})
	}
	require.FileExists(t, theirs)
}
