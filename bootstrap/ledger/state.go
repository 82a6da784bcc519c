// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"time"
)

// maxInline is how many bytes of content a record holds itself.
const maxInline = 4 << 10

// State describes an object at one time. The zero state: there is no object.
type State struct {
	Type  string `json:"type,omitempty"`  // the kind's word, such as "file"
	Value string `json:"value,omitempty"` // such as a kernel value, a link's target or a mount's source
	Mode  uint32 `json:"mode,omitempty"`  // as in chmod(2)
	UID   int    `json:"uid,omitempty"`
	GID   int    `json:"gid,omitempty"`

	Size    int64  `json:"size,omitempty"`
	SHA256  string `json:"sha256,omitempty"`  // of the content, in hex; empty: it has none
	Content []byte `json:"content,omitempty"` // if it is short and known

	// Xattrs are the extended attributes that grant or restrict access. Nil: they are not
	// known, and not compared.
	Xattrs map[string][]byte `json:"xattrs,omitzero"`

	// Identity is what tells an object from an equal one in its place, if the kind knows, for
	// its Same. States are equal whatever their identities.
	Identity string `json:"identity,omitempty"`

	// Open opens the content, if Content is not it.
	Open func() (io.ReadCloser, error) `json:"-"`
	// Changed is when the object was last changed, if the kind knows. If that is long ago, as of
	// what was moved there whole, it may be an original at once.
	Changed time.Time `json:"-"`

	// Half: it is what a killed write has left, of an object that is not written at once.
	Half bool `json:"-"`

	kept     bool // the content is in a file of the store
	secret   bool // the content is not kept
	isLikely bool // it was compared with a likely content, and has it

	seen fs.FileInfo // of a file or directory that was read
	in   fs.FileInfo // of the directory in which it was looked for
	over *State      // that a write takes the place of; nil: whatever is there
}

// onto returns s as it is written over an object that was in state now.
func (s State) onto(now State) State {
	s.over = &State{Type: now.Type, Value: now.Value, seen: now.seen, in: now.in}
	return s
}

// Over returns the value of the object that a write takes the place of, as it was read; empty
// if that is not known.
func (s State) Over() (value string) {
	if s.over == nil {
		return ""
	}
	return s.over.Value
}

// WithContent returns s with this content.
func (s State) WithContent(content []byte) State {
	sum := sha256.Sum256(content)
	s.Size, s.SHA256, s.Content, s.Open = int64(len(content)), hex.EncodeToString(sum[:]), content, nil
	return s
}

// IsZero reports whether there is no object.
func (s State) IsZero() bool { return s.Type == "" }

// Equal reports whether two states are the same, wherever their contents are.
func (s State) Equal(o State) bool {
	return s.Type == o.Type && s.Value == o.Value && s.Mode == o.Mode && s.UID == o.UID && s.GID == o.GID &&
		s.Size == o.Size && s.SHA256 == o.SHA256 &&
		(s.Xattrs == nil || o.Xattrs == nil || maps.EqualFunc(s.Xattrs, o.Xattrs, bytes.Equal))
}

// bare returns s without its content.
func (s State) bare() State {
	s.Content, s.Open, s.kept, s.isLikely, s.seen, s.in, s.over = nil, nil, false, false, nil, nil, nil
	return s
}

// isContentKnown reports whether the content could be written again.
func (s State) isContentKnown() bool {
	return s.SHA256 == "" || s.Size == 0 || s.kept || s.Content != nil || s.Open != nil
}

// hash identifies a state in the list of those that agents left. Extended attributes are
// left out: they may not be known yet when a state is wanted.
func (s State) hash() string {
	s = s.bare()
	s.Xattrs, s.Identity, s.secret = nil, "", false
	text, err := json.Marshal(s)
	if err != nil {
		return "" // no field of a state can fail
	}
	return shortSum(text)
}

// Reader opens the content of a state that has one.
func (s State) Reader() (io.ReadCloser, error) {
	if s.Open != nil {
		return s.Open()
	}
	return inMemory(s.Content), nil
}

func inMemory(content []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(content)) }

// A stateJSON is a state in the file. Its value and identity may hold any byte.
type stateJSON struct {
	plainState
	Value    text `json:"value,omitempty"`
	Identity text `json:"identity,omitempty"`
	Kept     bool `json:"kept,omitempty"`
	Secret   bool `json:"secret,omitempty"`
}

type plainState State

// MarshalJSON is the state as it is recorded.
func (s State) MarshalJSON() ([]byte, error) {
	return json.Marshal(stateJSON{plainState(s), text(s.Value), text(s.Identity), s.kept, s.secret})
}

// UnmarshalJSON reads a recorded state, and no set-user-id bit.
func (s *State) UnmarshalJSON(raw []byte) error {
	var j stateJSON
	err := json.Unmarshal(raw, &j)
	*s = State(j.plainState)
	s.Mode &= modeBits
	s.Value, s.Identity, s.kept, s.secret = string(j.Value), string(j.Identity), j.Kept, j.Secret
	return err
}
