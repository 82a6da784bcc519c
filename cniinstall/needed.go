// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"cmp"
	"context"
	"io"
	"path/filepath"
	"slices"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/cniconf"
	"github.com/slipway-dev/slipway/internal/input"
)

// remains are the configurations on the node after an undo, whichever program wrote
// them: plugins that their pods need are not removed.
type remains struct {
	dirs    []string        // with configurations
	entries []journal.Entry // of all steps
	journal *journal.Journal
	undone  func(path string) bool   // true for paths restored by then
	counts  func(path string) bool   // nil: all do
	aside   func(journal.Entry) bool // true for one that stays aside
}

// remains searches the handler's folder, and those in which a configuration is
// recorded, under their recorded names, which the entries of their files use.
func (h Handler) remains(ctx context.Context, j *journal.Journal, undone func(path string) bool) (remains, error) {
	entries, err := j.Entries()
	r := remains{entries: entries, journal: j, undone: undone}
	r.aside = func(e journal.Entry) bool { return len(h.missing(ctx, j, e)) > 0 }
	for _, e := range entries {
		if isConf(e) {
			r.add(filepath.Dir(e.Object))
		}
	}
	r.add(filepath.Clean(cmp.Or(h.ConfDir, defaultConfDir)))
	return r, err
}

func (r *remains) add(dir string) {
	if !slices.ContainsFunc(r.dirs, func(known string) bool { return sameDir(known, dir) }) {
		r.dirs = append(r.dirs, dir)
	}
}

// need returns an error that matches [journal.ErrNeeded] if one of the
// configurations needs the plugin, and names it. It stops reading at the first that
// does.
func (r remains) need(ctx context.Context, plugin string) error {
	counts := func(path string) bool { return !r.undone(path) && (r.counts == nil || r.counts(path)) }
	for _, dir := range r.dirs {
		if err := (cniconf.Folder{Dir: dir}).Need(ctx, plugin, counts); err != nil {
			return err
		}
	}
	return r.needRestored(ctx, plugin)
}

// needRestored is need for configurations that come back: with this undo or, if set
// aside, with a later one.
func (r remains) needRestored(ctx context.Context, plugin string) error {
	for _, e := range r.entries {
		if !isConf(e) || e.Before.Type == "" || !r.undone(e.Object) && e.After.Type != "" || r.counts != nil && !r.counts(e.Object) || r.aside(e) {
			continue
		}
		raw, err := r.original(ctx, e)
		if err := (cniconf.Folder{Dir: filepath.Dir(e.Object)}).Needs(ctx, plugin, e.Object, raw, err); err != nil {
			return err
		}
	}
	return nil
}

// original reads the original content of e's object.
func (r remains) original(ctx context.Context, e journal.Entry) ([]byte, error) {
	if to := e.Before.Target; to != "" {
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(e.Object), to)
		}
		return input.ReadFile(ctx, to, input.MaxNetwork)
	}
	content, err := r.journal.Content(e.Before)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	raw, err := io.ReadAll(io.LimitReader(input.WithContext(ctx, content), input.MaxNetwork+1))
	if err == nil && len(raw) > input.MaxNetwork {
		err = input.TooLarge(e.Object, input.MaxNetwork)
	}
	return raw, err
}

// parseWhole reads a configuration of the folder with the plugins that libcni adds
// to it.
func parseWhole(ctx context.Context, f cniconf.Folder, name string, raw []byte) (*network, error) {
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
