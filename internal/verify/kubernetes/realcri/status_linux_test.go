// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package realcri_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realcri"
)

const (
	usual = "/run/containerd/containerd.sock"
	ours  = `{"cniVersion":"1.0.0","name":"ours","plugins":[{"type":"our-cni"}]}`
)

func content(text string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return []byte(text), nil }
}

// versions are the versions to test: with -short only Debian's, which needs no build.
func versions() []string {
	if testing.Short() {
		return []string{realcri.Debian}
	}
	return realcri.Versions
}

// The runtime's folders are set in a file that its configuration imports.
func TestRealContainerdSaysWhereItLooksAndWhatItHasLoaded(t *testing.T) {
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			root, err := realcri.Root(t.Context(), os.Stderr, version)
			require.NoError(t, err)
			node := bootstraptest.NewNode(t)
			dir := t.TempDir()
			config, imported := filepath.Join(dir, "config.toml"), filepath.Join(dir, "imported.toml")
			require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, "version = 2\nimports = [%q]\n", imported), 0o644))
			require.NoError(t, os.WriteFile(imported, []byte("version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".cni]\nbin_dir = \"/var/lib/k3s/bin\"\nconf_dir = \"/var/lib/k3s/net.d\"\n"), 0o644))
			log, err := os.Create(filepath.Join(dir, "log"))
			require.NoError(t, err)
			defer log.Close()
			containerd := node.Command(filepath.Join(root, "usr/bin/containerd"), "--config", config)
			containerd.Stdout, containerd.Stderr = log, log
			require.NoError(t, containerd.Start())
			t.Cleanup(func() {
				if t.Failed() {
					text, readErr := os.ReadFile(log.Name())
					t.Logf("asked last: %v\ncontainerd said: %s", errors.Join(err, readErr), text)
				}
			})

			found := cri.Endpoint{HostProc: node.Proc()}
			var s cri.Status
			require.Eventually(t, func() bool {
				if found, err = cri.Find(t.Context(), node.Proc()); err == nil {
					s, err = found.Status(t.Context())
				}
				return err == nil
			}, time.Minute, 50*time.Millisecond)
			require.Equal(t, usual, found.Path)
			require.Equal(t, cri.CNI{PluginDirs: []string{"/var/lib/k3s/bin"}, ConfDir: "/var/lib/k3s/net.d", MaxConfNum: 1}, s.CNI)
			require.False(t, s.NetworkReady)
			require.Contains(t, s.LastLoad, "no network config found in /var/lib/k3s/net.d")
			require.Empty(t, s.Networks)
			ids, err := found.SandboxIDs(t.Context())
			require.NoError(t, err)
			require.Empty(t, ids)

			require.NoError(t, node.Do(t.Context(), func(context.Context) error {
				return os.WriteFile("/var/lib/k3s/net.d/05-ours.conflist", []byte(ours), 0o600)
			}))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			require.NoError(t, cri.Loaded{Endpoint: found, Conf: content(ours)}.Apply(ctx))
			s, err = found.Status(t.Context())
			require.NoError(t, err)
			require.True(t, s.NetworkReady)
			require.Equal(t, []cri.Network{{Name: "ours", Plugins: []string{"our-cni"}, Source: ours}}, s.Networks)
		})
	}
}
