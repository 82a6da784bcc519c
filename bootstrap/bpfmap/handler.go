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

// typeMap is the [journal.State.Type] of a map. Its Value is what the map is like, and its
// File which of several like it: the id, which no other map has until the next boot.
const typeMap = "map"

// Handler undoes what [Pinned] has recorded: it removes pins of the maps that were
// made, and the directory if it is empty then.
type Handler struct{}

// Kinds lists the kinds of entries of bpfmap.
func (Handler) Kinds() []string { return []string{kindPin, kindDir} }

// Namespaces lists the mount namespace.
func (Handler) Namespaces() []string { return []string{"mnt"} }

// Owns returns an error if no Pinned can have recorded e.
func (Handler) Owns(e journal.Entry) error {
	switch {
	case !filepath.IsAbs(e.Object) || filepath.Clean(e.Object) != e.Object || e.Object == "/":
		return fmt.Errorf("%q is no absolute path below /", e.Object)
	case e.Kind == kindPin && (e.After.Type != typeMap || e.After.Value == "" || e.After.File == ""):
		return fmt.Errorf("%s is no map's", e.Object)
	case e.Boot == "":
		return fmt.Errorf("%s is of no boot, but a pin goes with its own", e.Object)
	}
	return nil
}

// Look says what there is to undo about e. A pin of another map than the one that was
// made is somebody else's.
func (Handler) Look(ctx context.Context, _ *journal.Pass, e journal.Entry) (journal.Undo, error) {
	if err := ctx.Err(); err != nil {
		return journal.Undo{}, err
	}
	return lookAtPin(e)
}
