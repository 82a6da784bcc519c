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

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/durable"
)

// typeLayout is the [journal.State.Type] of a layout. Its Size is that of all
// values together, its Value a digest of the keys and values, by which one step
// recognizes what another has written.
const typeLayout = "layout"

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

// leftBy reports whether the layout is as the step left it, going by e. If the size
// differs, the files are not read.
func (l *layout) leftBy(ctx context.Context, d *durable.Dir, e journal.Entry) (bool, error) {
	size := int64(0)
	for _, info := range l.held {
		if !info.Mode().IsRegular() {
			return false, nil
		}
		size += info.Size()
	}
	if l.data == "" || e.After.Size != size && (e.Was == nil || e.Was.Size != size) {
		return false, nil
	}
	now, err := l.state(ctx, d)
	return err == nil && e.Left(now), err
}

// state describes the layout, whose values must all be files.
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
