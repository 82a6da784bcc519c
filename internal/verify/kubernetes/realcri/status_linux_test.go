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
			require.EventuallyWithT(t, func(t *assert.CollectT) { // it listens before it answers
				looks, err := found.CNI(context.Background())
				require.NoError(t, err)
				require.Equal(t, cri.CNI{PluginDirs: []string{"/var/lib/k3s/bin"}, ConfDir: "/var/lib/k3s/net.d"}, looks)
			}, time.Minute, 50*time.Millisecond)
			loaded := cri.Loaded{Endpoint: found, Conf: content(ours)}
			waits, err := loaded.Check(t.Context())
			require.NoError(t, err)
			require.Contains(t, waits[0], "it has loaded none; it says: cni config load failed: no network config found in /var/lib/k3s/net.d")
			ids, err := found.SandboxIDs(t.Context())
			require.NoError(t, err)
			require.Empty(t, ids)

			require.NoError(t, node.Do(t.Context(), func(context.Context) error {
				return os.WriteFile("/var/lib/k3s/net.d/05-ours.conflist", []byte(ours), 0o600)
			}))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			require.NoError(t, loaded.Apply(ctx))
			waits, err = loaded.Check(t.Context())
			require.NoError(t, err)
			require.Empty(t, waits)
		})
	}
}
