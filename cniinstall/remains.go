// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/cniconf"
)

// remains are the configurations on the node after an undo, whichever program wrote
// them: plugins that their pods need are not removed.
type remains struct {
	recorded
	dirs  []string // with configurations
	after ledger.StateAfter
	lost  func(path string, original ledger.State) string
}

// remains searches the given directory, and those in which a configuration is recorded, under
// their recorded names.
func (u Uninstall) remains(files recorded, after ledger.StateAfter) remains {
	r := remains{recorded: files, after: after, lost: u.lostConf}
	for _, o := range files.files {
		if o.Kind == confKind {
			r.add(filepath.Dir(o.Object))
		}
	}
	r.add(filepath.Clean(cmp.Or(u.ConfDir, defaultConfDir)))
	return r
}

func (r *remains) add(dir string) {
	if !slices.ContainsFunc(r.dirs, func(known string) bool { return sameDir(known, dir) }) {
		r.dirs = append(r.dirs, dir)
	}
}

// stays reports whether the configuration at path remains as it is.
func (r remains) stays(path string) bool {
	_, changes := r.after(conf(), path)
	return !changes
}

// comesBack returns the state that a configuration gets again: with this undo or, if it was
// set aside by another agent or step, with a later one.
func (r remains) comesBack(o ledger.Record) (to ledger.State, now, later bool) {
	if o.Kind != confKind || !isConfName(o.Object) {
		return to, false, false
	}
	if to, now = r.after(conf(), o.Object); now {
		return to, !to.IsZero(), false
	}
	later = o.Left.IsZero() && !o.Original.IsZero() && !isThere(o.Object) && r.lost(o.Object, o.Original) == ""
	return o.Original, false, later
}

// directory reads configurations without the plugins that go.
func (r remains) directory(dir string) cniconf.Directory {
	return cniconf.Directory{Dir: dir, Edit: func(name string, raw []byte) []byte {
		return r.asOwned(filepath.Join(dir, name), raw, func(o ledger.Record) (ledger.State, bool) { return r.after(&ledger.Kind{Name: inPlaceKind}, o.Object) })
	}}
}

// need returns an error that matches [ledger.ErrNeeded] if one of the
// configurations needs the plugin, and names it. It stops reading at the first that
// does.
func (r remains) need(ctx context.Context, plugin string) error {
	for _, dir := range r.dirs {
		if err := r.directory(dir).Need(ctx, plugin, r.stays); err != nil {
			return err
		}
	}
	for _, o := range r.files {
		to, now, later := r.comesBack(o)
		if !now && !later {
			continue
		}
		raw, err := contentOf(ctx, o.Object, to)
		if err := (cniconf.Directory{Dir: filepath.Dir(o.Object)}).Needs(ctx, plugin, o.Object, raw, err); err != nil {
			return err
		}
	}
	return nil
}

// successor returns the configuration with which a runtime deletes pods when the one at path
// has gone: the first in the directory by then. It is nil if there is none, or if a runtime
// would stop there. Own means that the same step has published it.
func (r remains) successor(ctx context.Context, path string) (n *network, own bool, err error) {
	f := r.directory(filepath.Dir(path))
	names, err := f.List(ctx, func(name string) bool { return isConfName(name) && r.stays(filepath.Join(f.Dir, name)) })
	if err != nil {
		return nil, false, err
	}
	back := map[string]ledger.State{}
	for _, o := range r.files {
		if to, now, _ := r.comesBack(o); now && filepath.Dir(o.Object) == f.Dir {
			back[filepath.Base(o.Object)] = to
			names = append(names, filepath.Base(o.Object))
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return filepath.Join(f.Dir, name) == path })
	if len(names) == 0 {
		return nil, false, nil
	}
	first := slices.Min(names)
	raw, err := f.Read(ctx, first)
	if to, comes := back[first]; comes {
		raw, err = contentOf(ctx, filepath.Join(f.Dir, first), to)
	}
	if err == nil {
		n, err = parseWhole(ctx, f, first, raw)
	}
	if err != nil {
		return nil, false, ctx.Err()
	}
	gone, _, _ := r.at(path)
	next, _, _ := r.at(filepath.Join(f.Dir, first))
	return n, back[first].IsZero() && shareStep(gone, next), nil
}

// parseWhole reads a configuration of the directory with the plugins that libcni adds
// to it.
func parseWhole(ctx context.Context, f cniconf.Directory, name string, raw []byte) (*network, error) {
	var parts []part
	err := f.EachPart(ctx, name, raw, func(path string, raw []byte, err error) error {
		p := part{path: path}
		if err == nil {
			p.plugin, p.err = pluginName(raw)
		}
		parts = append(parts, p)
		return err
	})
	if err != nil {
		return nil, err
	}
	return parse(name, raw, parts...)
}

// parseFile reads the configuration at path.
func parseFile(ctx context.Context, path string) (*network, error) {
	f, name := cniconf.Directory{Dir: filepath.Dir(path)}, filepath.Base(path)
	raw, err := f.Read(ctx, name)
	if err != nil {
		return nil, err
	}
	return parseWhole(ctx, f, name, raw)
}
