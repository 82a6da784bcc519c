// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// Kind returns the kind of configurations in a directory, for undoing what every [Writer] has
// written. An object is the path of the directory.
//
// The configuration is removed as a whole. What it replaced does not come back: an earlier
// configuration, and a file that was in the place of a key's link. An earlier configuration
// that a killed run had not replaced yet stays. A configuration that is no longer as it was
// written is not touched, nor is a file that has taken the place of a key's link since.
func Kind() *ledger.Kind { return job{}.kind() }

// kind is Kind, and can write what the job wants.
func (j job) kind() *ledger.Kind {
	dirs := ledger.Dir()
	j.seen = map[string]fs.FileInfo{}
	return &ledger.Kind{
		Name: "configdir",
		Read: func(ctx context.Context, dir string) (ledger.State, error) {
			if j.left != nil && !j.left.IsZero() {
				return *j.left, nil
			}
			s, err := j.read(ctx, dir)
			return s, hint(dir, err)
		},
		Write: func(ctx context.Context, dir string, to ledger.State) error {
			if to.IsZero() {
				return j.remove(ctx, dir)
			}
			return j.write(ctx)
		},
		Met:       func(now ledger.State, w ledger.Want) bool { return now.Equal(w.To) && now.Identity == "" },
		Same:      isSame,
		Describe:  j.describe,
		Contents:  j.contents,
		Sweep:     j.sweep,
		Parts:     parts,
		Canonical: dirs.Canonical, Owns: dirs.Owns,
		EndsWithBoot: func(dir string) bool { return dirs.EndsWithBoot(filepath.Join(dir, dataLink)) },
		Permission: func(_ context.Context, dir string) error {
			_, err := durable.Writable(dir)
			return denied(err)
		},
		Place: func(dir string) (string, string) { return dir, "" },
	}
}

// describe says which keys are written and removed.
func (j job) describe(dir string, from, to ledger.State) string {
	switch {
	case !to.IsZero():
		return j.change
	case strings.HasPrefix(from.Identity, takenBy):
		return "remove configuration from " + dir + ", but not " + from.Identity
	}
	return "remove configuration from " + dir
}

// contents returns the keys whose values change, by the paths at which readers find them.
func (j job) contents(ctx context.Context, dir string, _, to ledger.State) (before, after map[string]ledger.State, err error) {
	before, after = map[string]ledger.State{}, map[string]ledger.State{}
	l := &layout{}
	d, err := openLayout(dir)
	if d != nil {
		defer d.Close()
		l, err = inspect(ctx, d, nil)
	}
	if err != nil {
		return nil, nil, err
	}
	for key := range l.held {
		now, isKnown := l.values[key]
		if wanted, isWanted := j.values[key]; to.IsZero() || !isKnown || !isWanted || now != wanted {
			if before[filepath.Join(dir, key)], err = ledger.File().Read(ctx, filepath.Join(dir, l.data, key)); err != nil {
				return nil, nil, err
			}
		}
	}
	for key, text := range j.want {
		if now, isThere := l.values[key]; !to.IsZero() && (!isThere || now != j.values[key]) {
			path := filepath.Join(dir, key)
			after[path] = ledger.FileWant(path, fileMode, []byte(text)).To
		}
	}
	return before, after, nil
}

// links lists those of the keys, and then ..data. They go before what they lead to.
func (l *layout) links() []string {
	if strings.HasPrefix(l.linkOf[dataLink], "..") {
		return append(l.remove, dataLink)
	}
	return l.remove
}

func (l *layout) dataDir() []string {
	if l.data == "" {
		return nil
	}
	return []string{l.data}
}

// parts lists the paths of a configuration.
func parts(ctx context.Context, dir string) (paths []string, err error) {
	d, err := openLayout(dir)
	if err != nil || d == nil {
		return nil, err
	}
	defer d.Close()
	l, err := inspect(ctx, d, nil)
	if err != nil {
		return nil, err
	}
	for _, names := range [][]string{l.links(), l.dataDir(), l.litter} {
		for _, name := range names {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	return paths, nil
}

// Wants lists the configuration, after the directories that are missing. No copy is kept of
// an earlier one.
func (d Writer) Wants(ctx context.Context) (ledger.Wants, error) {
	j, err := d.job()
	if err != nil {
		return ledger.Wants{Kinds: []*ledger.Kind{Kind()}}, err
	}
	return j.wants(ctx)
}

func (d Writer) job() (job, error) {
	if d.Config == nil {
		return job{}, hint(d.Path, errNoConfig)
	}
	return job{dir: d.Path, want: d.Config.Data()}, nil
}

func (j job) wants(ctx context.Context) (wants ledger.Wants, err error) {
	if err := errors.Join(ctx.Err(), j.validate()); err != nil {
		return wants, hint(j.dir, err)
	}
	if j.dir, err = filepath.Abs(j.dir); err != nil {
		return wants, hint(j.dir, err)
	}
	j.values = valuesOf(j.want)
	l, lookErr := j.look(ctx)
	if lookErr == nil {
		j.change = strings.Join(l.changes(j.dir), "; ")
		wants.List, lookErr = ledger.DirWants(j.dir, dirMode)
	}
	wants.List = append(wants.List, ledger.Want{
		Kind: j.kind(), Object: j.dir, To: stateOf(j.values), Secret: true,
		Needs: []string{ledger.Want{Kind: ledger.Dir(), Object: j.dir}.ID()},
		Ready: func(context.Context) error { return hint(j.dir, lookErr) },
	})
	return wants, nil
}

// Advise warns if users other than root and the caller can change the agent's configuration: the
// directory, or one on the path to it, belongs to another user, or is writable for others. An
// emptyDir always is: only the pod's own containers reach it, and there is nothing to do.
func (d Writer) Advise(context.Context) ([]string, error) {
	switch at, err := durable.OpenVetted(nil, d.Path); {
	case err == nil:
		return nil, at.Close()
	case errors.Is(err, durable.ErrShared) && !isInEmptyDir(d.Path):
		return []string{fmt.Sprintf("users other than root may change the agent's configuration in %s: %v", d.Path, err)}, nil
	}
	return nil, nil // it will be made, or Check reports another error
}

// isInEmptyDir goes by the directory of the kubelet that is mounted.
func isInEmptyDir(path string) bool {
	mounts, err := mountinfo.Read()
	m, ok := mountinfo.Holding(mounts, path)
	return err == nil && ok && strings.Contains(m.Root, "/kubernetes.io~empty-dir/")
}
