// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/containernetworking/cni/pkg/utils"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/cniresult"
	"github.com/slipway-dev/slipway/internal/input"
)

// remains are the configurations on the node after an undo, whichever program wrote
// them: plugins that their pods need are not removed.
type remains struct {
	dirs    []string        // with configurations
	entries []journal.Entry // of all steps
	journal *journal.Journal
	undone  func(path string) bool // true for paths restored by then
	counts  func(path string) bool // nil: all do
}

// remains searches the handler's folder, and those in which a configuration is
// recorded, under their recorded names, which the entries of their files use.
func (h Handler) remains(j *journal.Journal, undone func(path string) bool) (remains, error) {
	entries, err := j.Entries()
	r := remains{entries: entries, journal: j, undone: undone}
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
	for _, dir := range r.dirs {
		f := folder{dir: dir}
		names, err := f.list(ctx, isConfName)
		if err != nil {
			return err
		}
		for _, name := range names {
			path := filepath.Join(dir, name)
			if r.undone(path) || r.counts != nil && !r.counts(path) {
				continue
			}
			raw, err := f.read(ctx, name)
			if err := f.needs(ctx, plugin, path, raw, err); err != nil {
				return err
			}
		}
	}
	return r.needRestored(ctx, plugin)
}

// needRestored is need for configurations that come back: with this undo or, if set
// aside, with a later one.
func (r remains) needRestored(ctx context.Context, plugin string) error {
	for _, e := range r.entries {
		if !isConf(e) || e.Before.Type == "" || !r.undone(e.Object) && e.After.Type != "" || r.counts != nil && !r.counts(e.Object) {
			continue
		}
		raw, err := r.original(ctx, e)
		if err := (folder{dir: filepath.Dir(e.Object)}).needs(ctx, plugin, e.Object, raw, err); err != nil {
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

// needs returns an error if the configuration with this content needs the plugin,
// or if it cannot tell.
func (f folder) needs(ctx context.Context, plugin, conf string, raw []byte, unread error) error {
	stays := func(why string, args ...any) error {
		return told{plugin + " stays: " + fmt.Sprintf(why, args...), journal.ErrNeeded}
	}
	name := filepath.Base(plugin)
	switch {
	case errors.Is(unread, fs.ErrNotExist): // gone, or a dangling link
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case name == loopback:
		return stays("container runtimes run it for each pod, and %s remains", conf)
	case unread != nil:
		return untold(plugin, conf, unread)
	case cniresult.Names(raw, name):
		return stays("%s names it", conf)
	}
	return f.eachPart(ctx, conf, raw, func(part string, raw []byte, err error) error {
		switch {
		case err != nil:
			return untold(plugin, part, err)
		case cniresult.Names(raw, name):
			return stays("%s names it", part)
		}
		return nil
	})
}

// untold returns the error for a configuration that cannot be read. If it is not a
// file, that is the node's state, and the plugin stays; if reading fails, the undo
// has failed.
func untold(plugin, conf string, err error) error {
	err = fmt.Errorf("%s stays: cannot tell whether %s names it: %w", plugin, conf, err)
	if errno := syscall.Errno(0); errors.As(err, &errno) && errno != syscall.ELOOP {
		return err
	}
	return told{err.Error(), journal.ErrNeeded}
}

// parseWhole reads a configuration of the folder with the plugins that libcni adds
// to it.
func (f folder) parseWhole(ctx context.Context, name string, raw []byte) (*network, error) {
	var parts []part
	err := f.eachPart(ctx, name, raw, func(path string, raw []byte, err error) error {
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

// eachPart calls each for the plugins that libcni adds to a list from the folder of the
// network's name (NetworkConfFromFile, since 1.3), until it returns an error.
func (f folder) eachPart(ctx context.Context, conf string, raw []byte, each func(path string, raw []byte, err error) error) error {
	var list struct{ Name string }
	if !cniresult.IsList(conf) || json.Unmarshal(raw, &list) != nil || utils.ValidateNetworkName(list.Name) != nil {
		return nil
	}
	d := folder{dir: filepath.Join(f.dir, list.Name)}
	names, err := d.list(ctx, func(name string) bool { return filepath.Ext(name) == ".conf" })
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return nil
	case err != nil:
		return each(d.dir, nil, err)
	}
	for _, name := range names {
		raw, err := d.read(ctx, name)
		if err := each(filepath.Join(d.dir, name), raw, err); err != nil {
			return err
		}
	}
	return nil
}
