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
	"github.com/slipway-dev/slipway/internal/failure"
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
	switch {
	case report == nil:
		return errors.New("watch a configuration: no function given to report to")
	case len(Versions(ctx, r.Sources)) == 0:
		return errors.New("watch a configuration: none of its sources is a directory or a file")
	}
	var seen []string
	var failed error
	resolve := func() (*Config, error) {
		seen = Versions(ctx, r.Sources) // later changes are seen in the next round
		var config *Config
		config, failed = r.Resolve(ctx)
		return config, failed
	}
	wait := func() error {
		for {
			if err := failure.Sleep(ctx, lookEvery); err != nil {
				return err
			}
			if failed != nil || !slices.Equal(Versions(ctx, r.Sources), seen) {
				return nil
			}
		}
	}
	return drift.Watch(ctx, resolve, wait, Diff, func(c *Config, changes []Change, err error) error {
		return report(Update{c, changes, err})
	})
}

// Versions returns, for [Watch] here and in configresolve/kube, a text for each [Dir] and
// [File] among the sources, including [Optional] ones, that changes when the content
// does. It reads no content.
func Versions(ctx context.Context, sources []Source) (all []string) {
	for _, source := range sources {
		for o, ok := source.(optional); ok; o, ok = source.(optional) {
			source = o.Source
		}
		switch s := source.(type) {
		case Dir:
			all = append(all, s.state(ctx))
		case File:
			all = append(all, stat(s.Path))
		}
	}
	return all
}

// state returns the target of ..data, or for a plain directory the state of each file. A
// path that cannot be examined counts as missing.
func (d Dir) state(ctx context.Context) string {
	if version := d.version(); version != "" {
		return version
	}
	names, err := input.ReadNames(ctx, d.Path, func(name string) bool { return !strings.HasPrefix(name, "..") })
	if err != nil {
		return ""
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		b.WriteString(name + " " + stat(filepath.Join(d.Path, name)) + "\n")
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
