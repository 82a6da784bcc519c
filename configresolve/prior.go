// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/record"
)

// prior is the layout that a directory held before the first Apply, as the
// record keeps it: all that one rename of ..data shows or hides. The zero value
// is a directory without one.
type prior struct {
	Data  record.State            `json:"data,omitzero"`   // of ..data itself, with its content if it is a file
	Dir   record.State            `json:"dir,omitzero"`    // of the data directory that it showed, absent if it showed none
	Files map[string]record.State `json:"files,omitempty"` // what that held, with content
	Links map[string]string       `json:"links,omitempty"` // of keys: where they lead, by name
}

func (p prior) empty() bool {
	return p.Data.Type == "" && p.Dir.Type == "" && len(p.Files)+len(p.Links) == 0
}

// shows reports whether both show the same. The name of the data directory
// does not count.
func (p prior) shows(o prior) bool {
	if p.Dir.Type == "" {
		return o.Dir.Type == "" && p.Data.Same(o.Data)
	}
	return p.Dir.Same(o.Dir) && maps.EqualFunc(p.Files, o.Files, record.State.Same)
}

// values are the contents of the regular files.
func (p prior) values() map[string]string {
	values := map[string]string{}
	for name, s := range p.Files {
		if s.Type == "file" {
			values[name] = string(s.Content)
		}
	}
	return values
}

// capture reads the layout that l has found in root.
func capture(root *os.Root, l *layout) (p prior, err error) {
	if p.Data, err = stateOf(root, dataLink); err != nil {
		return p, err
	}
	p.Links = map[string]string{}
	for name, target := range l.linkOf {
		if strings.HasPrefix(target, dataLink+"/") && !strings.HasPrefix(name, "..") {
			p.Links[name] = target
		}
	}
	if l.data == "" {
		return p, nil
	}
	if p.Dir, err = stateOf(root, l.data); err != nil {
		return p, err
	}
	entries, err := fs.ReadDir(root.FS(), l.data)
	if err != nil {
		return p, err
	}
	p.Files = make(map[string]record.State, len(entries))
	for _, e := range entries {
		if p.Files[e.Name()], err = stateOf(root, path.Join(l.data, e.Name())); err != nil {
			return p, err
		}
	}
	return p, nil
}

// stateOf describes what is at name, with the content of a file.
func stateOf(root *os.Root, name string) (record.State, error) {
	s, err := record.Snapshot(filepath.Join(root.Name(), name))
	if err != nil || s.Type != "file" {
		return s, err
	}
	s.Content, err = readFile(root, name)
	return s, err
}

// lost is an error that names what could not be brought back.
func (p prior) lost(dir string) error {
	var errs []error
	lost := func(name string, s record.State) {
		if s.Type == "dir" || s.Type == "other" {
			kind := map[string]string{"dir": "directory", "other": "special file"}[s.Type]
			errs = append(errs, fmt.Errorf("%s is a %s, which could not be brought back: move it away", dir+"/"+name, kind))
		}
	}
	lost(dataLink, p.Data)
	for name, s := range p.Files {
		lost(dataLink+"/"+name, s)
	}
	return errors.Join(errs...)
}

// keep stores p for an entry of book: in the entry if it is small, else in a
// file beside the book, which goes with the entry.
func (p prior) keep(book *record.Book, stateDir string) (record.State, error) {
	if p.empty() {
		return record.State{}, nil
	}
	text, err := json.Marshal(p)
	if err != nil {
		return record.State{}, err
	}
	s := record.State{Type: "other", Size: int64(len(text)), SHA256: sum(text)}
	if len(text) <= record.MaxInline {
		s.Content = text
		return s, nil
	}
	if err := book.Begin(); err != nil { // makes the state directory
		return record.State{}, err
	}
	s.Blob = bookName + ".blob." + s.SHA256
	return s, durable.WriteFile(filepath.Join(stateDir, s.Blob), 0o600, text)
}

// kept is what keep has stored.
func kept(s record.State, stateDir string) (p prior, err error) {
	if s.Type == "" {
		return prior{}, nil
	}
	text := s.Content
	if s.Blob != "" {
		if text, err = os.ReadFile(filepath.Join(stateDir, s.Blob)); err != nil {
			return p, fmt.Errorf("kept content: %w", err)
		}
	}
	if got := sum(text); got != s.SHA256 {
		return p, fmt.Errorf("kept content is damaged: its SHA-256 is %s, not %s", got, s.SHA256)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("kept content: %w", err)
	}
	return p, nil
}

func sum(text []byte) string {
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:])
}
