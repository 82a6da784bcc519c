// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
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

// value is what is compared of a key's value.
type value struct {
	size int64
	sum  [sha256.Size]byte
}

func valuesOf(texts map[string]string) map[string]value {
	values := map[string]value{}
	for key, text := range texts {
		values[key] = value{int64(len(text)), sha256.Sum256([]byte(text))}
	}
	return values
}

// stateOf describes a layout with values.
func stateOf(values map[string]value) ledger.State {
	sum, size := sha256.New(), int64(0)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		v := values[key]
		fmt.Fprintf(sum, "%q %d %x\n", key, v.size, v.sum)
		size += v.size
	}
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

// state describes the layout, compared with what is wanted. A configuration of another shape
// is another program's.
func (l *layout) state() (s ledger.State) {
	switch target := l.linkOf[dataLink]; {
	case target == "" && len(l.remove)+len(l.litter) == 0:
		return s
	case target == "":
		s = otherState("leftovers")
		s.Half = true
		return s
	case l.all[target] == nil && strings.HasPrefix(target, ".."):
		return nowhere
	case l.data == "" || len(l.values) < len(l.held):
		return otherState("leads to " + strconv.Quote(target))
	}
	s = stateOf(l.values)
	switch key := l.taken(); {
	case !l.plain:
		s.Identity = otherFiles
	case key != "":
		s.Identity = takenBy + strconv.Quote(key)
	case l.want != nil && !l.done():
		s.Identity = incomplete
	}
	return s
}

// taken returns a key whose link has been replaced by something else.
func (l *layout) taken() string {
	for _, key := range slices.Sorted(maps.Keys(l.held)) {
		if _, ok := l.all[key]; ok && !l.leadsToKey(key) {
			return key
		}
	}
	return ""
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
	l, err := inspect(ctx, d, j.values)
	if err != nil {
		return s, err
	}
	return l.state(), nil
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
