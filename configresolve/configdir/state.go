// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/durable"
)

// typeLayout is the type of the state of a directory with a configuration, of which the state
// has a digest as its content. Its Identity says if the layout needs a repair all the same: of
// links, for which nothing is recorded, or of the files, which are written anew then.
const (
	typeLayout = "configuration"
	incomplete = "incomplete"
	otherFiles = "other files"
	takenBy    = "another program's file in the place of "
)

// maxBytes is the number of bytes of all values together that are read or written.
const maxBytes = 64 << 20

// stateOf describes a layout with values.
func stateOf(values map[string]string) ledger.State {
	sum, size := sha256.New(), int64(0)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		addKey(sum, key, int64(len(values[key])))
		io.WriteString(sum, values[key])
		size += int64(len(values[key]))
	}
	return layoutState(sum, size)
}

func addKey(sum hash.Hash, key string, size int64) { fmt.Fprintf(sum, "%q %d\n", key, size) }

func layoutState(sum hash.Hash, size int64) ledger.State {
	return ledger.State{Type: typeLayout, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}
}

// otherState describes a layout whose values are not known.
func otherState(what string) ledger.State {
	s := ledger.State{Type: typeLayout}.WithContent([]byte(what))
	s.Identity, s.Content = incomplete, nil
	return s
}

// nowhere is a layout whose values are gone, which is nobody's any more.
var nowhere = otherState("leads nowhere")

// isSame reports whether what a layout has become is that which was left, or found: other
// files with the same values are not replaced yet.
func isSame(now, left ledger.State) bool {
	return now.Equal(nowhere) || now.Equal(left) && (left.Identity != otherFiles || now.Identity == otherFiles)
}

// state describes the layout, compared with want. A configuration of another shape is another
// program's.
func (l *layout) state(ctx context.Context, d *durable.Dir, want map[string]string) (s ledger.State, err error) {
	size, known := l.size()
	switch target := l.linkOf[dataLink]; {
	case target == "" && len(l.remove)+len(l.litter) == 0:
		return s, nil
	case target == "":
		s = otherState("leftovers")
		s.Half = true
		return s, nil
	case l.all[target] == nil && strings.HasPrefix(target, ".."):
		return nowhere, nil
	case !known || size > maxBytes:
		return otherState("leads to " + strconv.Quote(target)), nil
	case want != nil && l.same:
		s = stateOf(want)
	default:
		s, err = l.read(ctx, d)
	}
	switch key := l.taken(); {
	case !l.plain:
		s.Identity = otherFiles
	case key != "":
		s.Identity = takenBy + strconv.Quote(key)
	case want != nil && !l.done():
		s.Identity = incomplete
	}
	return s, err
}

// taken returns a key whose link has been replaced by something else.
func (l *layout) taken() string {
	for _, key := range slices.Sorted(maps.Keys(l.held)) {
		if _, there := l.all[key]; there && !l.leadsToKey(key) {
			return key
		}
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
		size += min(info.Size(), maxBytes+1)
	}
	return size, l.data != ""
}

// read describes the layout by its values, whose size must be known.
func (l *layout) read(ctx context.Context, d *durable.Dir) (s ledger.State, err error) {
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
		if errors.Is(err, syscall.EAGAIN) { // a process has a lease on it (F_SETLEASE)
			return otherState("leased"), nil
		}
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

// read describes the configuration in dir.
func (j job) read(ctx context.Context, dir string) (s ledger.State, err error) {
	d, err := openLayout(dir)
	if err != nil || d == nil {
		return s, err
	}
	defer d.Close()
	if j.seen[dir], err = d.Stat(); err != nil {
		return s, err
	}
	for range attempts { // a file may disappear that was just listed
		var l *layout
		if l, err = inspect(ctx, d, j.want); err == nil {
			s, err = l.state(ctx, d, j.want)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return s, err
}

// openLayout opens dir, and returns nil if it is gone.
func openLayout(dir string) (*durable.Dir, error) {
	d, err := durable.OpenDir(dir)
	if isGone(err) {
		return nil, nil
	}
	return d, err
}

func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
