// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// Our configuration was edited, so it stays and runtimes still use it: the plugin it names
// stays too, and so does the kubeconfig that it needs, through any number of Reverts, until the
// configuration is gone.
func TestCNI8_CNI10_EditedConfigurationKeepsWhatItNeeds(t *testing.T) {
	n := newNode(t)
	write(t, n.other("10-aws.conflist"), awsConf, 0o644)
	before := tree(t, n.root)
	i := n.exclusive()
	kubeconfig := filepath.Join(n.root, "kubeconfig")
	i.Needs = []string{kubeconfig}
	_, err := i.Book.Apply(t.Context(), "kubeconfig", ledger.Wants{List: []ledger.Want{ledger.FileWant(kubeconfig, 0o600, []byte("server"))}})
	require.NoError(t, err)
	require.NoError(t, i.Apply(t.Context()))
	edited := strings.Replace(agentConf, "false", "true", 1)
	require.NotEqual(t, agentConf, edited)
	write(t, n.confFile(), edited, 0o600)

	changes, foreseen := i.CheckRevert(t.Context())
	require.Equal(t, []string{"write file " + n.other("10-aws.conflist")}, changes)
	for range 3 {
		err := i.Revert(t.Context())
		require.ErrorContains(t, err, foreseen.Error())
		require.ErrorContains(t, err, n.confFile()+" is no longer as it was left")
		require.NotContains(t, err.Error(), "holds", "a directory whose content was already reported is not")
		requireContent(t, n.confFile(), edited, 0o600)
		requireContent(t, n.plugin("cilium-cni"), script("0.3.1", "0.4.0", "1.0.0"), 0o755)
		require.FileExists(t, n.plugin("loopback"), "a runtime runs it for each pod")
		require.FileExists(t, n.other("10-aws.conflist"))
		require.FileExists(t, kubeconfig)
		changes, foreseen = i.CheckRevert(t.Context())
		require.Error(t, foreseen)
		require.Empty(t, changes)
	}
	require.NoError(t, os.Remove(n.confFile()))
	require.NoError(t, i.Revert(t.Context()))
	require.NoFileExists(t, n.plugin("cilium-cni"))
	require.NoFileExists(t, kubeconfig)
	require.FileExists(t, n.plugin("loopback"), "now another CNI's pods need it")
	require.NoError(t, os.Rename(n.other("10-aws.conflist"), filepath.Join(n.root, "aws")))
	require.NoError(t, i.Revert(t.Context()))
	require.NoError(t, os.Rename(filepath.Join(n.root, "aws"), n.other("10-aws.conflist")))
	require.Equal(t, before, tree(t, n.root))
}
