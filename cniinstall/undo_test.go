// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cniinstall"
)

// A configuration that the user has taken over is kept with the plugins it names; a revert that
// no longer keeps it removes all of them.
func TestCNI8_KeepConf(t *testing.T) {
	n := newNode(t)
	n.others()
	n.source("extra", script("0.3.1", "1.0.0"))
	before := tree(t, n.root)
	i := n.exclusive()
	require.NoError(t, i.Apply(t.Context()))
	kept := tree(t, n.conf)

	user := recorded{Install: i.Install, Book: n.book(cniinstall.Uninstall{KeepConf: true})}
	changes, err := user.CheckRevert(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"remove file " + n.plugin("extra")}, changes)
	require.NoError(t, user.Revert(t.Context()))
	require.Equal(t, kept, tree(t, n.conf))
	require.FileExists(t, n.plugin("cilium-cni"), "the configuration names it")
	require.NoFileExists(t, n.plugin("extra"))
	changes, err = user.CheckRevert(t.Context())
	require.NoError(t, err)
	require.Empty(t, changes)

	requireUndone(t, i, n, before)
}
