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
	// Changes lists the keys in which Config differs from the previous report; in
	// the first report, all keys.
	Changes []Change
	// Err says why the sources cannot be resolved any more: one was deleted, or
	// permission to read it was withdrawn, for example. Config is then the last good
	// one, and Changes is empty. The next report without an Err says that the
	// sources can be resolved again.
	Err error
}

// lookEvery is how often Watch looks at its directories and files. The kubelet itself
// takes up to a minute to bring a change of a ConfigMap to the node.
const lookEvery = time.Second

// Watch resolves r and calls report with the result, and again whenever a [Dir] or a
// [File] among the sources has changed and the result differs: in a value, or in where
// a value comes from. It returns the error of ctx when that ends, the error of report
// if there is one, the error of the very first resolution if that fails, and an
// error at once if no source is a Dir or a File.
//
// Once a second it looks whether the symbolic link ..data, which the kubelet and
// configresolve/configdir replace for each version, leads elsewhere; in a directory
// without that link, and at a file, it looks at names, sizes and modification times. If
// something cannot be read, Watch tries again every second. Sources of other kinds are
// read again whenever one of these changes, but changes in them alone cause no report.
// Everything happens in the goroutine of the caller.
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
		seen = Versions(ctx, r.Sources) // what changes from here on is looked at again
		var config *Config
		config, failed = r.Resolve(ctx)
		return config, failed
	}
	wait := func() error {
		for {
			if err := pause(ctx, lookEvery); err != nil {
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

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Versions returns a text for each [Dir] and [File] among the sources, also an [Optional]
// one, which differs once what it holds does: for [Watch], here and in configresolve/kube.
// It reads no content.
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

// state is the version that the kubelet has put in place, or of a plain directory that of
// each file; what cannot be looked at counts as missing.
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
