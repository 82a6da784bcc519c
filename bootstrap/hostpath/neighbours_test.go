// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostpath_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

func plans(t *testing.T, root string, adopt bool, a ledger.Wanter) (all []*bootstrap.Plan) {
	for _, agent := range []string{"first", "second"} {
		all = append(all, &bootstrap.Plan{
			Host:   hostns.Host{LockFile: filepath.Join(t.TempDir(), "lock")},
			Ledger: &ledger.Ledger{Dir: filepath.Join(root, "state"), Agent: agent, NoOwner: true, Adopt: adopt},
			Steps:  []bootstrap.Step{{Name: "paths", Wants: a}},
		})
	}
	return all
}

func TestPLAN14_PathsOfTwoAgents(t *testing.T) {
	root := t.TempDir()
	dir, file := filepath.Join(root, "run/acme"), filepath.Join(root, "run/acme/config")
	for _, a := range []ledger.Wanter{
		hostpath.Paths{List: []hostpath.Path{{Path: dir, Type: hostpath.DirectoryOrCreate}, {Path: file, Type: hostpath.FileOrCreate}}},
		hostpath.Content{Path: file, Bytes: []byte("x"), Parents: true},
	} {
		for _, order := range [][]int{{0, 1}, {1, 0}} {
			both := plans(t, root, false, a)
			for i, p := range both {
				report, err := p.Check(t.Context())
				require.NoError(t, err)
				require.Equal(t, bootstrap.WouldChange, report.Results[0].Status)
				if i == 1 {
					require.Contains(t, report.Results[0].Changes, "keep "+file+` also for this agent: agent "first" has made it`)
				}
				_, err = p.Apply(t.Context())
				require.NoError(t, err)
				report, err = p.Apply(t.Context())
				require.NoError(t, err)
				require.Equal(t, bootstrap.Unchanged, report.Results[0].Status, report.Results[0].Changes)
			}
			_, err := both[order[0]].RevertAll(t.Context())
			require.NoError(t, err)
			require.FileExists(t, file)
			_, err = both[order[1]].RevertAll(t.Context())
			require.NoError(t, err)
			require.NoDirExists(t, filepath.Join(root, "run"))
			require.NoDirExists(t, filepath.Join(root, "state"))
		}
	}
}

// A path that one agent made stays for another that needs it, even if the other reaches it
// through a link, or would not make it.
func TestPLAN14_WhatAnotherNeedsStays(t *testing.T) {
	for _, types := range [][2]hostpath.Type{{hostpath.DirectoryOrCreate, hostpath.FileOrCreate}, {hostpath.Directory, hostpath.File}} {
		root := t.TempDir()
		links := filepath.Join(root, "links")
		require.NoError(t, os.Mkdir(links, 0o755))
		dir, file := filepath.Join(root, "dir"), filepath.Join(root, "file")
		for _, path := range []string{dir, file} {
			require.NoError(t, os.Symlink(path, filepath.Join(links, filepath.Base(path))))
		}
		makes := hostpath.Paths{List: []hostpath.Path{{Path: dir, Type: hostpath.DirectoryOrCreate}, {Path: file, Type: hostpath.FileOrCreate}}}
		needs := hostpath.Paths{List: []hostpath.Path{{Path: filepath.Join(links, "dir"), Type: types[0]}, {Path: filepath.Join(links, "file"), Type: types[1]}}}
		first, second := plans(t, root, false, makes)[0], plans(t, root, false, needs)[1]
		for _, p := range []*bootstrap.Plan{first, second} {
			_, err := p.Apply(t.Context())
			require.NoError(t, err)
		}
		report, err := second.Apply(t.Context())
		require.NoError(t, err)
		require.Equal(t, bootstrap.Unchanged, report.Results[0].Status)
		_, err = first.RevertAll(t.Context())
		require.NoError(t, err)
		require.DirExists(t, dir)
		require.FileExists(t, file)
		_, err = second.RevertAll(t.Context())
		require.NoError(t, err)
		require.NoDirExists(t, dir)
		require.NoFileExists(t, file)
		require.NoDirExists(t, filepath.Join(root, "state"))
	}
}

func TestPLAN15_AFileIsAdoptedAndADirectoryIsNot(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "run")
	file := filepath.Join(dir, "config")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	p := plans(t, root, true, hostpath.Paths{List: []hostpath.Path{{Path: dir, Type: hostpath.DirectoryOrCreate}, {Path: file, Type: hostpath.FileOrCreate}}})[0]
	report, err := p.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, bootstrap.Unchanged, report.Results[0].Status, "an empty file may be any agent's")
	p = plans(t, root, true, hostpath.Content{Path: file, Bytes: []byte("x")})[0]
	report, err = p.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{file}, report.Results[0].Adopted)
	_, err = p.RevertAll(t.Context())
	require.NoError(t, err)
	require.NoFileExists(t, file)
	require.DirExists(t, dir)
}
