// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cniinstall"
)

// An uninstall under the same lock ends the guard, and removed files stay removed.
func TestCNI7_UninstallEndsIt(t *testing.T) {
	ownTime(t, func(t *testing.T) {
		for range 4 {
			n, g := guardedNodeIn(t, t.TempDir())               // nothing below /dev is reverted
			require.NoError(t, os.Remove(n.plugin("loopback"))) // the guard is awake when the uninstall comes
			unlock, err := n.lock(t.Context())
			require.NoError(t, err)
			require.NoError(t, n.install().Revert(t.Context()))
			require.NoError(t, unlock())
			require.ErrorIs(t, g.end(), cniinstall.ErrUninstalled)
			require.NoFileExists(t, n.confFile())
			require.NoFileExists(t, n.plugin("cilium-cni"))
			requireNoTemp(t, n.root)
		}
	})
}

// A later installation ends the guard even if no file differs: one by another owner, or by the
// same owner with other content.
func TestCNI7_LaterInstallationEndsIt(t *testing.T) {
	ownTime(t, func(t *testing.T) {
		n, g := guardedNode(t)
		i := n.ownedBy("pod-b", n.install())
		require.NoError(t, i.Apply(t.Context()))
		err := g.end()
		require.ErrorIs(t, err, ledger.ErrNotOwner)
		require.ErrorContains(t, err, `"pod-b" (generation 1`)

		second := start(t, i, cniinstall.Guard{Lock: n.lock}, plainly)
		require.NoError(t, os.Remove(n.confFile()))
		second.repair()
		i = n.ownedBy("pod-b", n.install()) // another process of that owner
		i.Config = agentOf(cniinstall.Agent{Debug: true})
		require.NoError(t, i.Apply(t.Context()))
		err = second.end()
		require.ErrorIs(t, err, ledger.ErrRevoked)
		require.ErrorContains(t, err, n.confFile()+" was installed with other content since")
		requireConverged(t, i, n.root)

		late := n.ownedBy("pod-b", n.install()) // the older one, started late
		require.ErrorIs(t, start(t, late, cniinstall.Guard{Lock: n.lock}, plainly).end(), ledger.ErrRevoked)
		requireConverged(t, i, n.root)
	})
}

// An uninstall or a later installation ends the guard even when something else is wrong: here
// the network to join is gone.
func TestCNI7_EndsWhateverElseIsWrong(t *testing.T) {
	ownTime(t, func(t *testing.T) {
		for want, act := range map[error]func(context.Context, node, recorded) error{
			cniinstall.ErrUninstalled: func(ctx context.Context, _ node, i recorded) error { return i.Revert(ctx) },
			ledger.ErrNotOwner: func(ctx context.Context, n node, i recorded) error {
				i.Config = agentOf(cniinstall.Agent{})
				return n.ownedBy("pod-b", i).Apply(ctx)
			},
		} {
			n := newNode(t)
			other := n.conf + "/10-other.conflist"
			write(t, other, `{"cniVersion":"0.3.1","name":"other","plugins":[{"type":"bridge"}]}`, 0o644)
			n.source("bridge", script("0.3.1", "1.0.0"))
			i := n.install()
			i.Config = chainedOf(cniinstall.Chained{})
			require.NoError(t, i.Apply(t.Context()))
			g := start(t, i, cniinstall.Guard{Lock: n.lock}, plainly)
			require.NoError(t, os.Remove(n.confFile()))
			g.repair()
			require.NoError(t, os.Remove(other))
			require.ErrorIs(t, receive(t, g.trouble), cniinstall.ErrTargetMissing)
			require.NoError(t, act(t.Context(), n, i))
			require.ErrorIs(t, g.end(), want)
		}
	})
}

// The guard does not install what was never installed.
func TestCNI7_InstallsNothingAnew(t *testing.T) {
	n := newNode(t)
	before := tree(t, n.root)
	require.ErrorIs(t, start(t, n.install(), cniinstall.Guard{}, plainly).end(), cniinstall.ErrUninstalled)
	require.Equal(t, before, tree(t, n.root))

	i := n.install()
	i.ConfName = "no.suffix"
	require.ErrorContains(t, start(t, i, cniinstall.Guard{}, plainly).end(), "no runtime loads it")
}

// An error is reported once, and the repair is retried, immediately if something changes.
func TestCNI7_TroubleIsToldAndTriedAgain(t *testing.T) {
	ownTime(t, func(t *testing.T) {
		n, g := guardedNode(t)
		require.NoError(t, os.Remove(n.confFile()))
		g.repair()
		require.NoError(t, os.Mkdir(n.confFile()+".new", 0o755))
		require.NoError(t, unix.Renameat2(unix.AT_FDCWD, n.confFile()+".new", unix.AT_FDCWD, n.confFile(), unix.RENAME_EXCHANGE))
		require.ErrorContains(t, receive(t, g.trouble), n.confFile()+": a directory is in the way: move it away")
		require.NoError(t, os.Remove(n.confFile()))
		g.repair()
		requireContent(t, n.confFile(), agentConf, 0o600)
	})
}
