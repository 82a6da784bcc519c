// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// former undoes the recorded files that the Install no longer has: those in other
// folders, if For has chosen the folders, and those under names that it no longer
// lists. The rest is kept.
type former struct {
	Handler
	i Install
}

// former returns the handler for the files to undo; ok is false if there are none.
func (i Install) former(ctx context.Context) (h former, ok bool, err error) {
	h = former{Handler{ConfDir: i.ConfDir, Force: true}, i} // with ours in place, the runtime can delete pods
	entries, err := journal.From(ctx).Recorded(ctx)
	return h, slices.ContainsFunc(entries, func(e journal.Entry) bool { return h.concerns(e) }), err
}

// concerns reports whether an entry is about a file that the Install no longer has.
func (h former) concerns(e journal.Entry) bool {
	moved, dir := h.i.place != nil, filepath.Dir(e.Object)
	switch {
	case e.Kind == kindBackup, e.Kind == kindFile && isConf(e):
		if h.i.Config == nil {
			return false
		}
		if !sameDir(dir, h.i.ConfDir) {
			return moved
		}
		return isConf(e) && isOurs(e) && !h.i.Exclusive && filepath.Base(e.Object) != h.i.ConfName // an exclusive one removes it itself
	case e.Kind == kindFile && h.i.Plugins != nil:
		if !h.i.isBinDir(dir) {
			return moved
		}
		return isPlugin(e) && h.i.dropped(filepath.Base(e.Object))
	}
	return false
}

// dropped reports whether Names exists and no longer includes the plugin.
func (i Install) dropped(plugin string) bool {
	return len(i.Names) > 0 && !slices.ContainsFunc(slices.Concat(i.Names, i.Optional), func(name string) bool {
		return slices.Contains(i.installedAs(name), plugin)
	})
}

func (i Install) isBinDir(dir string) bool {
	return slices.ContainsFunc(i.binDirs(), func(d string) bool { return sameDir(d, dir) })
}

// isIn reports whether one of the folders is dir, or in it.
func (i Install) isIn(dir string) bool {
	return slices.ContainsFunc(append(i.binDirs(), i.ConfDir), func(d string) bool { return mountinfo.Below(d, dir) })
}

// Look keeps the files that the Install has and, of the rest, those that were
// changed or are needed.
func (h former) Look(ctx context.Context, p *journal.Pass, e journal.Entry) (u journal.Undo, err error) {
	kept := fmt.Errorf("%s: %w", e.Object, journal.ErrKept)
	switch {
	case e.Kind == kindDir && (h.i.place == nil || h.i.isIn(e.Object)):
		return u, kept
	case e.Kind != kindDir && !h.concerns(e):
		return u, kept
	case e.Kind == kindFile && !isConf(e):
		u, err = h.lookPlugin(ctx, p, e)
	default:
		u, err = h.Handler.Look(ctx, p, e)
	}
	if errors.Is(err, journal.ErrKept) || errors.Is(err, journal.ErrChanged) || errors.Is(err, ErrInUse) || e.Kind == kindDir && err != nil {
		return journal.Undo{}, kept
	}
	return u, hint(err)
}

// lookPlugin keeps a plugin that is needed.
func (h former) lookPlugin(ctx context.Context, p *journal.Pass, e journal.Entry) (journal.Undo, error) {
	r, err := h.remains(ctx, p.Journal(), p.WillUndo)
	if err != nil {
		return journal.Undo{}, err
	}
	kept := func(c journal.Entry) bool { return p.WillKeep(c.Object) }
	return lookUnless(ctx, p, e, func(ctx context.Context) error { return h.needed(ctx, r, e, kept) })
}

// needed returns an error if the plugin is needed. If the runtime finds another
// copy in the Install's folders, only a configuration left in the old place can
// need it.
func (h former) needed(ctx context.Context, r remains, e journal.Entry, kept func(journal.Entry) bool) error {
	dir := filepath.Dir(e.Object)
	others := slices.DeleteFunc(h.i.searchDirs(), func(d string) bool { return sameDir(d, dir) })
	if _, err := find(filepath.Base(e.Object), others); err != nil || h.i.isBinDir(dir) {
		return Handler{}.needed(ctx, r, e)
	}
	r.counts = func(path string) bool {
		return slices.ContainsFunc(r.entries, func(c journal.Entry) bool {
			return c.Step == e.Step && c.Object == path && isOurs(c) && h.concerns(c) && kept(c)
		})
	}
	return r.need(ctx, e.Object)
}

// keptFormer names the formerly installed files that stay because they were changed
// or are needed.
func (i Install) keptFormer(ctx context.Context) (advice []string, err error) {
	h, some, err := i.former(ctx)
	if err != nil || !some {
		return nil, err
	}
	entries, err := journal.From(ctx).Recorded(ctx)
	if err != nil {
		return nil, err
	}
	changed := map[string]bool{}
	for _, e := range entries {
		if !h.concerns(e) {
			continue
		}
		now, err := journal.Snapshot(ctx, e.Object)
		if err != nil {
			return advice, err
		}
		if changed[e.Object] = !now.Same(e.Before) && !e.MatchesAfter(now); changed[e.Object] {
			advice = append(advice, fmt.Sprintf("%s, installed before, is %v: it is kept, and recorded until it is gone", e.Object, journal.ErrChanged))
		}
	}
	goes := func(path string) bool { is, known := changed[path]; return known && !is }
	r, err := h.remains(ctx, journal.From(ctx), goes)
	if err != nil {
		return advice, err
	}
	for _, e := range entries {
		if !h.concerns(e) || !isPlugin(e) || changed[e.Object] {
			continue
		}
		if why := h.needed(ctx, r, e, func(c journal.Entry) bool { return changed[c.Object] }); why != nil {
			advice = append(advice, "no longer installed: "+why.Error())
		}
	}
	return advice, nil
}

// checkFormer lists the changes of undoFormer.
func (i Install) checkFormer(ctx context.Context) ([]string, error) {
	h, some, err := i.former(ctx)
	if err != nil || !some {
		return nil, err
	}
	return journal.From(ctx).CheckUndo(ctx, h)
}

// undoFormer undoes the formerly installed files.
func (i Install) undoFormer(ctx context.Context) error {
	h, some, err := i.former(ctx)
	if err != nil || !some {
		return err
	}
	if err := journal.From(ctx).Undo(ctx, h); err != nil {
		return fmt.Errorf("undo the former installation: %w", err)
	}
	return nil
}
