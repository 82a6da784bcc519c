// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package realcri_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
			node := newNode(t)
			node.containerd(version, "/var/lib/k3s")
			found := cri.Endpoint{HostProc: node.Proc()}
			var s cri.Status
			require.EventuallyWithT(t, func(t *assert.CollectT) { // it listens before it answers
				var err error
				found, err = cri.Find(context.Background(), node.Proc())
				require.NoError(t, err)
				s, err = found.Status(context.Background())
				require.NoError(t, err)
			}, time.Minute, 50*time.Millisecond)
			require.Equal(t, usual, found.Path)
			require.Equal(t, cri.CNI{PluginDirs: []string{"/var/lib/k3s/bin"}, ConfDir: "/var/lib/k3s/net.d", MaxConfNum: 1}, s.CNI)
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
			require.Equal(t, []cri.Network{{Name: "ours", Plugins: []string{"our-cni"}, Source: ours}}, s.Networks)
		})
	}
}
