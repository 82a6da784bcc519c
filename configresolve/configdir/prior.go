// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configdir

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/filemode"
)

const (
	maxKept     = 8 << 20       // bytes of an earlier configuration: eight of the largest ConfigMaps
	maxKeptText = 4*maxKept + 1 // of that in JSON, with names and modes
	maxInline   = 4 << 10       // of that in the journal itself
)

// prior is the layout that a directory had before the first Apply, as the journal
// stores it: everything that one rename of ..data shows or hides. The zero value
// means that there was none.
type prior struct {
	Data  *object           `json:"data,omitempty"`  // ..data itself; nil: there was none
	Dir   *object           `json:"dir,omitempty"`   // the data directory that it showed; nil: it showed none
	Files map[string]object `json:"files,omitempty"` // what that held
	Links map[string]string `json:"links,omitempty"` // of keys: where they lead, by name
}

// object is a file, a link or a directory.
type object struct {
	Mode    fs.FileMode `json:"mode"` // with its type
	UID     int         `json:"uid,omitempty"`
	GID     int         `json:"gid,omitempty"`
	Target  string      `json:"target,omitempty"`  // of a link
	Content []byte      `json:"content,omitempty"` // of a file
}

// objectOf describes what info is about. A file's set-user-id and set-group-id bits
// do not count: no journal may restore a file that has them.
func objectOf(info fs.FileInfo) object {
	o := object{Mode: info.Mode()}
	o.UID, o.GID = ownerOf(info)
	if o.Mode.IsRegular() {
		o.Mode &^= fs.ModeSetuid | fs.ModeSetgid
	}
	return o
}

func (o object) isLink() bool { return o.Mode.Type() == fs.ModeSymlink }

// give sets the object's owner on f and then its mode, since a change of owner may
// clear mode bits.
func (o object) give(f *os.File) error {
	if err := chown(f, o.UID, o.GID); err != nil {
		return err
	}
	mode := o.Mode
	if mode.IsRegular() {
		mode &^= fs.ModeSetuid | fs.ModeSetgid
	}
	return f.Chmod(mode)
}

// is reports whether name in d, which info describes, is the object. Of a link,
// only the target counts.
func (o object) is(d *durable.Dir, name string, info fs.FileInfo) (bool, error) {
	if now := objectOf(info); now.Mode.Type() != o.Mode.Type() || !o.isLink() && (now.Mode != o.Mode || now.UID != o.UID || now.GID != o.GID) {
		return false, nil
	}
	if o.isLink() {
		target, err := d.Readlink(name)
		return target == o.Target, err
	}
	if o.Mode.IsRegular() {
		return holds(d, name, info, string(o.Content))
	}
	return true, nil
}

func (p prior) empty() bool { return p.Data == nil && len(p.Links) == 0 }

// values are the contents of the regular files.
func (p prior) values() map[string]string {
	values := map[string]string{}
	for name, o := range p.Files {
		if o.Mode.IsRegular() {
			values[name] = string(o.Content)
		}
	}
	return values
}

// shown reports whether d, whose layout is l, shows the same as before. The name of
// the data directory does not count.
func (p prior) shown(ctx context.Context, d *durable.Dir, l *layout) (bool, error) {
	if p.Dir == nil {
		info, there := l.all[dataLink]
		if l.data != "" || there != (p.Data != nil) {
			return false, nil
		}
		if !there {
			return true, nil
		}
		return p.Data.is(d, dataLink, info)
	}
	if l.data == "" || len(l.held) != len(p.Files) {
		return false, nil
	}
	data, err := d.OpenDir(l.data)
	if err != nil {
		return false, err
	}
	defer data.Close()
	if same, err := p.Dir.is(d, l.data, l.dataDir); !same || err != nil {
		return false, err
	}
	for name, info := range l.held {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		o, there := p.Files[name]
		if !there {
			return false, nil
		}
		if same, err := o.is(data, name, info); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// capturer reads a layout, up to the size that may be stored.
type capturer struct {
	ctx  context.Context
	room int64
}

// capture reads the layout l of d. It returns an error if anything in it could not
// be restored.
func capture(ctx context.Context, d *durable.Dir, l *layout) (p prior, err error) {
	c := capturer{ctx, maxKept}
	p.Links = map[string]string{}
	for name, target := range l.linkOf {
		if strings.HasPrefix(target, dataLink+"/") && !strings.HasPrefix(name, "..") {
			p.Links[name] = target
		}
	}
	if info, there := l.all[dataLink]; there {
		data, err := c.read(d, dataLink, info, d.Path(dataLink))
		if err != nil {
			return p, err
		}
		p.Data = &data
	}
	if l.data == "" {
		return p, nil
	}
	data, err := d.OpenDir(l.data)
	if err != nil {
		return p, err
	}
	defer data.Close()
	dir := objectOf(l.dataDir)
	p.Dir, p.Files = &dir, make(map[string]object, len(l.held))
	for _, name := range slices.Sorted(maps.Keys(l.held)) {
		if p.Files[name], err = c.read(data, name, l.held[name], d.Path(dataLink, name)); err != nil {
			return p, err
		}
	}
	return p, nil
}

// read reads name, which readers know as path.
func (c *capturer) read(d *durable.Dir, name string, info fs.FileInfo, path string) (o object, err error) {
	if err := c.ctx.Err(); err != nil {
		return o, err
	}
	o = objectOf(info)
	if err := keepable(path, info, c.room); err != nil {
		return o, err
	}
	if o.isLink() {
		o.Target, err = d.Readlink(name)
		return o, err
	}
	o.Content, err = d.ReadFile(name, info.Size())
	c.room -= int64(len(o.Content))
	return o, err
}

// keepable returns an error if what is at path could not be restored.
func keepable(path string, info fs.FileInfo, room int64) error {
	mode := info.Mode()
	switch {
	case mode.Type() == fs.ModeSymlink:
		return nil
	case !mode.IsRegular():
		return fmt.Errorf("%s is a %s, which could not be brought back: move it away", path, filemode.Type(mode))
	case info.Size() > room:
		return fmt.Errorf("%s: an earlier configuration of more than %d bytes is too much to keep: move it away", path, maxKept)
	}
	return nil
}

// keep stores p for an entry of the journal: in the entry if p is small, else in a
// file next to the journal, which is removed with the entry.
func (p prior) keep(ctx context.Context, j *journal.Journal) (s journal.State, err error) {
	if p.empty() {
		return s, nil
	}
	text, err := json.Marshal(p)
	if err != nil {
		return s, err
	}
	s.Type = typeLayout
	if values := p.values(); p.Dir != nil && len(values) == len(p.Files) {
		s = stateOf(values)
	}
	if len(text) <= maxInline {
		s.Content = text
		return s, nil
	}
	kept, err := j.Keep(ctx, func(w io.Writer) (journal.State, error) {
		_, err := w.Write(text)
		return journal.State{SHA256: hashOf(text)}, err
	})
	s.Blob = kept.Blob
	return s, err
}

// kept returns what keep has stored. The name of a file next to the journal ends in
// its hash.
func kept(j *journal.Journal, s journal.State) (p prior, err error) {
	if s.Type == "" {
		return p, nil
	}
	r, err := j.Content(s)
	if err != nil {
		return p, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, maxKeptText))
	if err != nil {
		return p, fmt.Errorf("kept content: %w", err)
	}
	if got := hashOf(text); s.Blob != "" && !strings.HasSuffix(s.Blob, got) {
		return p, fmt.Errorf("kept content is damaged: its SHA-256 is %s, and %s was kept", got, s.Blob)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("kept content: %w", err)
	}
	return p, p.validate()
}

// validate returns an error if capture cannot have read p.
func (p prior) validate() error {
	if p.Dir != nil && (p.Data == nil || !p.Data.isLink() || !p.Dir.Mode.IsDir()) || p.Dir == nil && len(p.Files) > 0 {
		return errors.New("kept content is not an earlier configuration")
	}
	for name := range p.Files {
		if !isName(name) {
			return fmt.Errorf("kept content has %q for the name of a file", name)
		}
	}
	for name, target := range p.Links {
		if !isName(name) || strings.HasPrefix(name, "..") || !strings.HasPrefix(target, dataLink+"/") {
			return fmt.Errorf("kept content has %q for the link of a key", name)
		}
	}
	return nil
}

func isName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}

func hashOf(text []byte) string {
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:])
}
