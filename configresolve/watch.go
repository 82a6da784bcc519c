// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/configresolve/internal/drift"
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

// lookEvery is how often Watch looks at its directories. The kubelet itself takes
// up to a minute to bring a change of a ConfigMap to the node.
const lookEvery = time.Second

// Watch resolves r and calls report with the result, and again whenever a [Dir]
// among the sources has changed and the result differs: in a value, or in where a
// value comes from. It returns the error of ctx when that ends, the error of report
// if there is one, the error of the very first resolution if that fails, and an
// error at once if no source is a Dir.
//
// Once a second it looks whether the symbolic link ..data, which the kubelet and
// configresolve/configdir replace for each version, leads elsewhere. In a directory
// without that link, it looks whether a file was added, removed or replaced; a file
// that is overwritten in place goes unnoticed. If something cannot be read, Watch
// tries again every second. Sources of other kinds are read again whenever a Dir
// changes, but changes in them alone cause no report. Everything happens in the
// goroutine of the caller.
func Watch(ctx context.Context, r Resolver, report func(Update) error) error {
	dirs := dirsOf(r.Sources)
	switch {
	case report == nil:
		return errors.New("watch a configuration: no function given to report to")
	case len(dirs) == 0:
		return errors.New("watch a configuration: none of its sources is a directory")
	}
	var seen []string
	var failed error
	resolve := func() (*Config, error) {
		seen = versions(dirs) // what changes from here on is looked at again
		var config *Config
		config, failed = r.Resolve(ctx)
		return config, failed
	}
	wait := func() error {
		for {
			if err := pause(ctx, lookEvery); err != nil {
				return err
			}
			if failed != nil || !slices.Equal(versions(dirs), seen) {
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

// dirsOf finds the directories, including optional ones.
func dirsOf(sources []Source) (dirs []Dir) {
	for _, source := range sources {
		for {
			o, ok := source.(optional)
			if !ok {
				break
			}
			source = o.Source
		}
		if d, ok := source.(Dir); ok {
			dirs = append(dirs, d)
		}
	}
	return dirs
}

// versions returns strings by which the states of directories can be told apart.
func versions(dirs []Dir) []string {
	var all []string
	for _, d := range dirs {
		version := d.version()
		if version == "" {
			if info, err := os.Stat(d.Path); err == nil {
				version = info.ModTime().Format(time.RFC3339Nano)
			}
		}
		all = append(all, version)
	}
	return all
}
