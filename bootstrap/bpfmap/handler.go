// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpfmap

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// Kinds of entries.
const (
	kindPin = "bpfmap/pin"
	kindDir = "bpfmap/dir"
)

// typeMap is the [journal.State.Type] of a map. Its Value is the map's shape. Its File is
// the map's id, which no other map has until the next boot.
const typeMap = "map"

// Handler undoes what [Pinned] has recorded: it removes the pins of maps that were
// created, and the directory if it is empty then.
type Handler struct{}

// Kinds lists the kinds of entries of bpfmap.
func (Handler) Kinds() []string { return []string{kindPin, kindDir} }

// Namespaces lists the mount namespace.
func (Handler) Namespaces() []string { return []string{"mnt"} }

// Owns returns an error if e cannot be an entry of a Pinned.
func (Handler) Owns(e journal.Entry) error {
	switch {
	case !filepath.IsAbs(e.Object) || filepath.Clean(e.Object) != e.Object || e.Object == "/":
		return fmt.Errorf("%q is not an absolute path below /", e.Object)
	case e.Kind == kindPin && (e.After.Type != typeMap || e.After.Value == "" || e.After.File == ""):
		return fmt.Errorf("%s is not a map's", e.Object)
	case e.Boot == "":
		return fmt.Errorf("%s names no boot, though a pin does not survive a reboot", e.Object)
	}
	return nil
}

// Look reports what undoing e would do. A pin of a map other than the recorded one is
// another program's.
func (Handler) Look(ctx context.Context, _ *journal.Pass, e journal.Entry) (journal.Undo, error) {
	if err := ctx.Err(); err != nil {
		return journal.Undo{}, err
	}
	return lookAtPin(e)
}
