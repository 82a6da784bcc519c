// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cniinstall"
)

// Our file is moved or copied over another CNI's name or to a new name: it is removed, and the
// other CNI's original is restored.
func TestCNI5_OurFileUnderAnothersNameDoesNotReplaceItsBackup(t *testing.T) {
	for name, tt := range map[string]struct {
		to     string
		remove bool
	}{
		"moved to another's":  {"10-aws.conflist", true},
		"copied to another's": {"10-aws.conflist", false},
		"moved to a new one":  {"99-new.conflist", true},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.others()
			before := tree(t, n.root)
			i := n.exclusive()
			require.NoError(t, i.Apply(t.Context()))
			raw, err := os.ReadFile(n.confFile())
			require.NoError(t, err)
			write(t, n.other(tt.to), string(raw), 0o600)
			if tt.remove {
				require.NoError(t, os.Remove(n.confFile()))
			}
			changes, err := i.Check(t.Context())
			require.NoError(t, err)
			require.Contains(t, changes, "remove "+n.other(tt.to))
			requireApplied(t, i, n.root)
			require.NoFileExists(t, n.other(tt.to))
			requireContent(t, n.other("10-aws.conflist.cilium_bak"), awsConf, 0o644)
			requireUndone(t, i, n, before)
		})
	}
}

// A file that has taken the place of one set aside stays, and so does the backup; every revert
// reports both.
func TestCNI5_RestoreClobbersNothing(t *testing.T) {
	n := newNode(t)
	n.others()
	i := n.exclusive()
	require.NoError(t, i.Apply(t.Context()))
	write(t, n.other("10-aws.conflist"), "its owner's newer one", 0o644)
	changes, foreseen := i.CheckRevert(t.Context())
	require.NotContains(t, strings.Join(changes, "\n"), "10-aws")
	for range 2 { // and the record of the backup, which is needed beside it
		err := i.Revert(t.Context())
		require.ErrorContains(t, err, foreseen.Error())
		require.ErrorContains(t, err, n.other("10-aws.conflist")+" is no longer as it was left")
		requireContent(t, n.other("10-aws.conflist"), "its owner's newer one", 0o644)
		requireContent(t, n.other("10-aws.conflist.cilium_bak"), awsConf, 0o644)
		require.FileExists(t, n.other("00-multus.conf"))
		require.NoFileExists(t, n.confFile())
	}
	require.NoError(t, os.Rename(n.other("10-aws.conflist.cilium_bak"), n.other("10-aws.conflist")))
	require.NoError(t, i.Revert(t.Context()))
	require.NoDirExists(t, n.state)
}

// The file was already put back, or the backup was removed or edited.
func TestCNI5_BackupsThatChanged(t *testing.T) {
	const live, backup = "10-aws.conflist", "10-aws.conflist.cilium_bak"
	for name, tt := range map[string]struct {
		change func(n node)
		want   string // expected error
		stays  string // content the backup keeps
	}{
		"put back":         {func(n node) { require.NoError(n.t, os.Rename(n.other(backup), n.other(live))) }, "", ""},
		"copied back":      {func(n node) { write(n.t, n.other(live), awsConf, 0o644) }, "", ""},
		"backup gone":      {func(n node) { require.NoError(n.t, os.Remove(n.other(backup))) }, "", ""},
		"backup edited":    {func(n node) { write(n.t, n.other(backup), "edited", 0o644) }, backup + " is no longer as it was left", "edited"},
		"backup of a mode": {func(n node) { require.NoError(n.t, os.Chmod(n.other(backup), 0o600)) }, backup + " is no longer as it was left", awsConf},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			write(t, n.other(live), awsConf, 0o644)
			n.ownLoopback()
			i := n.exclusive()
			require.NoError(t, i.Apply(t.Context()))
			tt.change(n)
			_, foreseen := i.CheckRevert(t.Context())
			err := i.Revert(t.Context())
			if tt.want == "" {
				require.NoError(t, foreseen)
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, foreseen, tt.want)
				require.ErrorContains(t, err, tt.want)
			}
			requireContent(t, n.other(live), awsConf, 0o644)
			require.NoFileExists(t, n.confFile())
			if tt.stays == "" {
				require.NoDirExists(t, n.state)
				require.NoFileExists(t, n.other(backup))
				return
			}
			require.ErrorContains(t, i.Revert(t.Context()), tt.want, "it stays recorded")
			require.Equal(t, tt.stays, read(t, n.other(backup)))
		})
	}
}

// A run was killed before it set a file aside, and the file's owner has written it anew since:
// the newer one comes back, however soon the next run was.
func TestCNI5_PLAN6_WhatIsWrittenAfterAKilledRunComesBack(t *testing.T) {
	n := newNode(t)
	n.others()
	i, other := n.exclusive(), n.other("10-aws.conflist")
	wants, err := i.Wants(i.with(t.Context()))
	require.NoError(t, err)
	for _, w := range wants.List {
		if write := w.Kind.Write; w.Object == other {
			w.Kind.Write = func(ctx context.Context, path string, to ledger.State) error {
				if path == other {
					panic("killed")
				}
				return write(ctx, path, to)
			}
		}
	}
	require.PanicsWithValue(t, "killed", func() { _, _ = i.Book.Apply(i.with(t.Context()), step, wants) })
	newer := awsConf + "\n"
	write(t, other, newer, 0o644)
	i.Book = n.book(cniinstall.Uninstall{})
	require.NoError(t, i.Apply(t.Context()))
	require.NoError(t, i.Revert(t.Context()))
	requireContent(t, other, newer, 0o644)
}
