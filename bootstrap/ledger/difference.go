// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/slipway-dev/slipway/internal/input"
	"github.com/slipway-dev/slipway/internal/textdiff"
)

// showDifference adds what becomes of an object's content to the differences that the context
// collects, if it does. What cannot be read is said, and is no failure of the look.
func (k *Kind) showDifference(ctx context.Context, object string, from, to State, isSecret bool) {
	all := textdiff.From(ctx)
	if all == nil {
		return
	}
	before, after := map[string]State{object: from}, map[string]State{object: to}
	if k.Contents != nil {
		var err error
		if before, after, err = k.Contents(ctx, object, from, to); err != nil {
			all.Add(object, textdiff.Side{Name: object}, textdiff.Side{Name: object, Hidden: err.Error()})
			return
		}
		isSecret = false
	}
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		all.Add(object, before[name].side(ctx, name, isSecret), after[name].side(ctx, name, isSecret))
	}
}

// side is the state of a file as it is compared with another. Of an object that is none, such as
// a directory, a mount or a kernel value, the change says all.
func (s State) side(ctx context.Context, name string, isSecret bool) textdiff.Side {
	f := textdiff.Side{Name: name, Size: s.Size, Sum: s.SHA256}
	switch s.Type {
	case typeFile:
		f.About = fmt.Sprintf("mode %04o, owner %d:%d", s.Mode, s.UID, s.GID)
	case typeSymlink:
		f.About, f.Text = "symbolic link", s.Value+"\n"
	default:
		return textdiff.Side{}
	}
	switch {
	case isSecret:
		f.Hidden = "it is secret"
	case !s.isContentKnown():
		f.Hidden = "no copy of it was kept"
	case s.Type == typeFile:
		text, err := s.beginning(ctx)
		if f.Text = text; err != nil {
			f.Hidden = err.Error()
		}
	}
	return f
}

// beginning reads as much of the content as is compared, and one byte more.
func (s State) beginning(ctx context.Context) (string, error) {
	content, err := s.Reader()
	if err != nil {
		return "", err
	}
	defer content.Close()
	text, err := io.ReadAll(io.LimitReader(input.WithContext(ctx, content), textdiff.MaxText+1))
	return string(text), err
}
