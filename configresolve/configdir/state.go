// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/durable"
)

// typeLayout is the [journal.State.Type] of a layout. Its Size is that of all
// values together, its Value a digest of the keys and values, by which one step
// recognizes the configuration of another. Its File is the target of ..data, by
// which an undo recognizes an earlier configuration that was not replaced.
const typeLayout = "layout"

// maxBefore is the number of bytes of an earlier configuration read to recognize
// another step's: eight of the largest ConfigMaps.
const maxBefore = 8 << 20

// stateOf describes a layout with values.
func stateOf(values map[string]string) journal.State {
	sum, size := sha256.New(), int64(0)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		addKey(sum, key, int64(len(values[key])))
		io.WriteString(sum, values[key])
		size += int64(len(values[key]))
	}
	return layoutState(sum, size)
}

func addKey(sum hash.Hash, key string, size int64) { fmt.Fprintf(sum, "%q %d\n", key, size) }

func layoutState(sum hash.Hash, size int64) journal.State {
	return journal.State{Type: typeLayout, Size: size, Value: hex.EncodeToString(sum.Sum(nil))}
}

// before describes the layout that is about to be replaced.
func (l *layout) before(ctx context.Context, d *durable.Dir) (s journal.State, err error) {
	if l.linkOf[dataLink] == "" {
		return s, nil
	}
	s.Type = typeLayout
	if size, known := l.size(); known && size <= maxBefore {
		s, err = l.state(ctx, d)
	}
	s.File = l.shows()
	return s, err
}

// shows returns the target of ..data, which need not exist, as text that a journal
// can hold. It is empty if there is no such link.
func (l *layout) shows() string {
	if target := l.linkOf[dataLink]; target != "" {
		return strconv.Quote(target)
	}
	return ""
}

// size adds up the sizes of the values. It is not known if there is no data
// directory, or if something in it is not a file.
func (l *layout) size() (size int64, known bool) {
	for _, info := range l.held {
		if !info.Mode().IsRegular() {
			return 0, false
		}
		size += info.Size()
	}
	return size, l.data != ""
}

// leftBy reports whether, according to e, the layout is as the step left it. If the
// size differs, the files are not read.
func (l *layout) leftBy(ctx context.Context, d *durable.Dir, e journal.Entry) (bool, error) {
	size, known := l.size()
	if !known || e.After.Size != size && (e.Was == nil || e.Was.Size != size) {
		return false, nil
	}
	now, err := l.state(ctx, d)
	return err == nil && e.MatchesAfter(now), err
}

// state describes the layout, whose size must be known.
func (l *layout) state(ctx context.Context, d *durable.Dir) (s journal.State, err error) {
	data, err := d.OpenDir(l.data)
	if err != nil {
		return s, err
	}
	defer data.Close()
	sum, size := sha256.New(), int64(0)
	for _, key := range slices.Sorted(maps.Keys(l.held)) {
		if err := ctx.Err(); err != nil {
			return s, err
		}
		addKey(sum, key, l.held[key].Size())
		n, err := copyFile(sum, data, key, l.held[key].Size())
		if err != nil {
			return s, err
		}
		size += n
	}
	return layoutState(sum, size), nil
}

// copyFile copies a file of the given size, and one byte more if it has grown.
func copyFile(to io.Writer, d *durable.Dir, name string, size int64) (int64, error) {
	f, err := d.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return io.Copy(to, io.LimitReader(f, size+1))
}
