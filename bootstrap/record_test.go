// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// careless is a wrapper that loses the context.
type careless struct{ bootstrap.Action }

func (c careless) Unwrap() bootstrap.Action        { return c.Action }
func (c careless) Apply(ctx context.Context) error { return c.Action.Apply(context.Background()) }

// asking is a file whose Check asks the journal.
type asking struct{ file }

func (a asking) Check(ctx context.Context) ([]string, error) {
	if _, _, err := journal.From(ctx).Lookup(ctx, "acme/file", a.path); err != nil {
		return nil, err
	}
	return a.file.Check(ctx)
}

// A change that cannot be undone fails the run that makes it, not the uninstall weeks later.
func TestPLAN19_AnActionThatRecordsNothingAlthoughItSaysSoFails(t *testing.T) {
	for name, action := range map[string]func(path string) bootstrap.Action{
		"alone":          func(path string) bootstrap.Action { return careless{file{path}} },
		"in a wrapper":   func(path string) bootstrap.Action { return bootstrap.Retry(careless{file{path}}, nil) },
		"its check asks": func(path string) bootstrap.Action { return careless{asking{file{path}}} },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, j := filepath.Join(dir, "file"), node(filepath.Join(dir, "state"), "pod")
			unrecorded := func(when string) {
				report, err := on(t, j, bootstrap.Step{Name: "file", Action: action(path)}, step("next", file{path + "2"})).Apply(t.Context())
				require.ErrorIs(t, err, bootstrap.ErrUnrecorded, when)
				require.ErrorContains(t, err, "acme/file", "it names the missing record")
				require.Equal(t, lines("file failed", "next not-run"), statuses(report), when)
				require.Equal(t, []string{"make " + path}, report.Results[0].Changes, "the change was made nevertheless")
				require.NoError(t, os.Remove(path))
			}
			unrecorded("at the first apply")

			_, err := on(t, j, step("file", file{path})).Apply(t.Context())
			require.NoError(t, err)
			require.NoError(t, os.Remove(path))
			unrecorded("at a later one, where an entry is there")
		})
	}
}

// A step with NoUndo gets no journal to record in, but can still look up the node's records.
func TestPLAN19_WhatIsNotToBeUndoneRecordsNothing(t *testing.T) {
	dir := t.TempDir()
	j := node(filepath.Join(dir, "state"), "pod")
	p := on(t, j, step("file", file{dir + "/file"}), bootstrap.Step{Name: "free", Action: file{dir + "/free"}, NoUndo: true})
	_, err := p.Apply(t.Context())
	require.NoError(t, err)
	require.FileExists(t, dir+"/free")

	asked := 0
	look := func(ctx context.Context) ([]string, error) {
		require.Nil(t, journal.From(ctx))
		entries, err := journal.OnNode(ctx).Entries()
		require.NoError(t, err)
		require.Len(t, entries, 1, "that of the other step")
		asked++
		return []string{"look"}, nil
	}
	apply := func(ctx context.Context) error { _, err := look(ctx); return err }
	p = on(t, j, bootstrap.Step{Name: "look", NoUndo: true, SkipVerify: true, Action: bootstrap.Func(look, apply)})
	_, err = p.Apply(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, asked)

	_, err = p.RevertAll(t.Context())
	require.NoError(t, err)
	require.NoFileExists(t, dir+"/file")
	require.FileExists(t, dir+"/free")
}

// A change in the process's own namespaces is recorded only if the process is on the host:
// otherwise an uninstall, which acts on the host, could not find it.
func TestPLAN19_WhatIsLocalIsRecordedOnTheHostOnly(t *testing.T) {
	for _, away := range []bool{false, true} {
		dir := t.TempDir()
		local := bootstrap.Step{Name: "local", Action: file{dir + "/file"}, Local: true}
		p := &bootstrap.Plan{Host: &host{away: away}, Journal: node(dir+"/state", "pod"), Steps: []bootstrap.Step{local}}
		if !away {
			require.NoError(t, p.Validate(), "this side is the host, where the handler acts")
		}
		_, err := p.Apply(t.Context())
		require.NoError(t, err)
		require.FileExists(t, dir+"/file")
		_, err = p.RevertAll(t.Context())
		require.NoError(t, err)
		if away {
			require.FileExists(t, dir+"/file")
		} else {
			require.NoFileExists(t, dir+"/file")
		}
	}
}
