// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/configresolve/internal/drift"
	"github.com/slipway-dev/slipway/internal/input"
)

// Update is one report by [Watch], here or in configresolve/kube.
type Update struct {
	// Config is the newest configuration that could be resolved.
	Config *Config
	// Changes lists the keys that differ from the previous report; the first report
	// lists all keys.
	Changes []Change
	// Err is why the sources can no longer be resolved: for example, one was deleted,
	// or the permission to read it was withdrawn. Config is then the last good one,
	// and Changes is empty. The next report without an Err means that the sources
	// can be resolved again.
	Err error
}

// lookEvery is the interval between two checks of the directories and files. The kubelet itself
// takes up to a minute to bring a change of a ConfigMap to the node.
const lookEvery = time.Second

// Watch resolves r and calls report with the result. It calls report again whenever a
// [Dir] or a [File] among the sources has changed and a value or its source differs. It
// returns the error of ctx once ctx is done, the first error of report, the error of the
// first resolution, and an error at once if no source is a Dir or a File.
//
// Once a second it compares the target of the symbolic link ..data, which the kubelet and
// configresolve/configdir replace for each version; for a file, or a directory without
// that link, it compares names, sizes and modification times. While something cannot be
// read, Watch tries again every second. Sources of other kinds are read again whenever
// one of these changes, but changes in them alone cause no report. Watch runs entirely in
// the caller's goroutine.
func Watch(ctx context.Context, r Resolver, report func(Update) error) error {
	w := watcher{resolver: r, feeds: drift.From(ctx)}
	switch {
	case report == nil:
		return errors.New("watch a configuration: no function given to report to")
	case w.feeds.Changed == nil && w.versions(ctx) == nil:
		return errors.New("watch a configuration: none of its sources is a directory or a file")
	}
	for {
		update, err := w.next(ctx)
		if err == nil && update != nil {
			err = report(*update)
		}
		if err == nil {
			err = w.wait(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// watcher is one run of Watch.
type watcher struct {
	resolver Resolver
	feeds    drift.Feeds // of Watch in configresolve/kube
	seen     []string    // the versions before the last resolution
	last     *Config
	trouble  string // the error that was reported last
}

// next resolves, and returns what there is to report, or nil.
func (w *watcher) next(ctx context.Context) (*Update, error) {
	now, err := w.resolve(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && w.last == nil:
		return nil, err
	case err != nil && err.Error() == w.trouble:
		return nil, nil
	case err != nil:
		w.trouble = err.Error()
		return &Update{Config: w.last, Err: err}, nil
	}
	u := &Update{Config: now, Changes: diff(w.last, now)}
	if w.last != nil && w.trouble == "" && len(u.Changes) == 0 {
		u = nil
	}
	w.last, w.trouble = now, ""
	return u, nil
}

func (w *watcher) resolve(ctx context.Context) (*Config, error) {
	w.seen = w.versions(ctx) // later changes are seen in the next round
	if w.feeds.Changed == nil {
		return w.resolver.Resolve(ctx)
	}
	w.feeds.Begin()
	config, err := w.resolver.Resolve(ctx)
	if err == nil { // else a source that was not read may still need its feed
		w.feeds.End()
	}
	return config, err
}

// wait returns when it is time to resolve again. What a cluster has refused is told by its
// feeds.
func (w *watcher) wait(ctx context.Context) error {
	var look <-chan time.Time
	if w.seen != nil {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		select {
		case <-w.feeds.Changed:
			return nil
		case <-look:
			if w.trouble != "" && w.feeds.Changed == nil || !slices.Equal(w.versions(ctx), w.seen) {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// versions returns a text for each [Dir] and [File] among the sources that changes when the
// content does. It reads no content.
func (w *watcher) versions(ctx context.Context) (all []string) {
	for _, source := range w.resolver.Sources {
		if source.state != nil {
			all = append(all, source.state(ctx))
		}
	}
	return all
}

// state returns the target of ..data, or for a plain directory the state of each file. A
// path that cannot be examined counts as missing.
func (d dir) state(ctx context.Context) string {
	if version := d.version(); version != "" {
		return version
	}
	names, err := input.ReadNames(ctx, d.path, func(name string) bool { return !strings.HasPrefix(name, "..") })
	if err != nil {
		return ""
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		b.WriteString(name + " " + stat(filepath.Join(d.path, name)) + "\n")
	}
	return b.String()
}

func stat(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.Size(), " ", info.ModTime().UnixNano())
}
