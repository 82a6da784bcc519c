// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"context"
	"slices"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// WriteDirStep is WriteDir that calls step before each change it makes.
func WriteDirStep(ctx context.Context, dir string, c *Config, step func(string)) (bool, error) {
	return job{dir: dir, want: c.Data(), step: step}.run(ctx)
}

// ApplyStep is Write.Apply that calls step before each change it makes to the
// layout.
func ApplyStep(ctx context.Context, w Write, step func(string)) error {
	j := w.job()
	j.step = step
	_, err := j.run(ctx)
	return err
}

// RevertStep is Write.Revert that calls step before each change it makes to the
// layout.
func RevertStep(ctx context.Context, w Write, step func(string)) error {
	return w.Journal.Undo(ctx, Handler{step})
}

// ParseFile is what File.Read does with a file's content.
var ParseFile = parse

// SyncFiles waits until the disk has all files, for so many at once.
var SyncFiles = syncFiles

// ParseKept reads what a journal has kept, and names the files and links in it.
func ParseKept(text []byte) (names []string, err error) {
	p, err := kept(nil, journal.State{Type: typeLayout, Content: text})
	for name := range p.Files {
		names = append(names, name)
	}
	for name := range p.Links {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, err
}
