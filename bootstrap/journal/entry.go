// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"
	"unicode/utf8"
)

// Entry is one object that one step has changed.
type Entry struct {
	// Kind says which handler can undo the entry, in the form "PACKAGE/WHAT", such
	// as "bpffs/mount".
	Kind string `json:"kind"`

	// Object names the object: a path or a key, for example. Kind, Object and Step
	// together are unique in a journal.
	Object string `json:"object"`

	// Step is the plan's step that changed the object. Begin fills it in.
	Step string `json:"step"`

	// Generation is that of the owner who last began the entry, or 0 if that process
	// had no owner. Begin fills in both Generation and Time.
	Generation int       `json:"generation,omitempty"`
	Time       time.Time `json:"time,omitzero"`

	// Boot is the boot that the change ends with, such as [Journal.Boot] for a
	// mount. Empty if the change outlives reboots.
	Boot string `json:"boot,omitempty"`

	// Namespace is the mount namespace in which the entry was begun. Begin fills it
	// in.
	Namespace string `json:"namespace,omitempty"`

	// Namespaces are those of the host that the object is in, which are entered to undo
	// it: those of its kind's handler. Begin fills them in.
	Namespaces []string `json:"namespaces,omitempty"`

	// Before is the object's state at the first Begin. After is the state in which
	// the step left it or, until Done, means to leave it. Was is the state in which
	// the step had left it before the entry was begun again.
	Before State  `json:"before"`
	After  State  `json:"after"`
	Was    *State `json:"was,omitempty"`
	Done   bool   `json:"done"`

	// Kept says that a revert has found the object in a state that is neither: it is
	// somebody else's by now. Later reverts say so again, until it is as before.
	Kept bool `json:"kept,omitempty"`

	// Needs lists objects that this one depends on: they are undone after it, and
	// not undone if it cannot be.
	Needs []string `json:"needs,omitempty"`

	unknown map[string]json.RawMessage // fields of a later version
}

// State describes an object at one time. The zero value means that there is no
// object.
type State struct {
	Type    string `json:"type,omitempty"` // "", "file", "dir", "symlink", "other", or the kind's own word
	Mode    uint32 `json:"mode,omitempty"` // of a file or directory, as in Unix: 0o7777
	UID     int    `json:"uid,omitempty"`
	GID     int    `json:"gid,omitempty"`
	Size    int64  `json:"size,omitempty"`    // of a file, in bytes
	SHA256  string `json:"sha256,omitempty"`  // of a file's content, in hex
	Content []byte `json:"content,omitempty"` // of a file, up to 4 KiB
	Blob    string `json:"blob,omitempty"`    // the file beside the journal that keeps more content
	Target  string `json:"target,omitempty"`  // of a symbolic link
	Value   string `json:"value,omitempty"`   // what a kind compares by: a kernel value, a mount's identity
	File    string `json:"file,omitempty"`    // which of several equal files it is, for a kind that cares: Same does not
}

// Same reports whether two states are the same, wherever their content is stored.
func (s State) Same(o State) bool {
	return s.Type == o.Type && s.Mode == o.Mode && s.UID == o.UID && s.GID == o.GID && s.Size == o.Size &&
		s.SHA256 == o.SHA256 && s.Target == o.Target && s.Value == o.Value
}

// MatchesAfter reports whether the step left its object in the state now, going by e. As
// long as e is not completed, that is the intended state with any mode and owner,
// since these are set last, or the state in which the step had left the object
// before it began e again.
func (e Entry) MatchesAfter(now State) bool {
	if e.Done {
		return now.Same(e.After)
	}
	after := e.After
	after.Mode, after.UID, after.GID = now.Mode, now.UID, now.GID
	return now.Same(after) || e.Was != nil && now.Same(*e.Was)
}

// same reports whether two entries are about the same object of the same step.
func (e Entry) same(o Entry) bool { return e.sameObject(o) && e.Step == o.Step }

func (e Entry) sameObject(o Entry) bool { return e.Kind == o.Kind && e.Object == o.Object }

// id tells entries apart.
type id struct{ kind, object, step string }

func (e Entry) id() id { return id{e.Kind, e.Object, e.Step} }

// again returns e, begun again as now, in the running boot. An entry that a reboot
// has undone, or that is kept, starts afresh, with the present state as its Before.
func (e Entry) again(now Entry, boot string) Entry {
	if e.Kept || e.Boot != "" && e.Boot != boot {
		return now
	}
	if e.Boot == "" {
		now.Boot = ""
	}
	now.Before, now.Was, now.unknown = e.Before, e.Was, e.unknown
	if e.Done {
		now.Was = &e.After
	}
	return now
}

func (e Entry) validate() error {
	switch {
	case e.Kind == "" || e.Object == "" || e.Step == "":
		return errors.New("an entry has no kind, no object or no step")
	case e.Before.Blob != "" && !isBlob(e.Before.Blob):
		return fmt.Errorf("%s: kept content %q is not a file beside the journal", e.Object, e.Before.Blob)
	}
	return e.validText()
}

// validText is an error if JSON cannot hold the entry: what is not UTF-8 would come
// back as another name, or link elsewhere.
func (e Entry) validText() error {
	texts := append([]string{e.Kind, e.Object, e.Step}, e.Needs...)
	for _, s := range []State{e.Before, e.After} {
		texts = append(texts, s.Type, s.Target, s.Value, s.File)
	}
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return fmt.Errorf("record %q: %q is not UTF-8, which is all that a journal can hold", e.Object, text)
		}
	}
	return nil
}

// String returns the kind and the object, such as "bpffs/mount /sys/fs/bpf".
func (e Entry) String() string { return e.Kind + " " + e.Object }

// UnmarshalJSON keeps the fields of a later version, for MarshalJSON.
func (e *Entry) UnmarshalJSON(text []byte) (err error) {
	type plain Entry
	e.unknown, err = unmarshalKeeping(text, (*plain)(e))
	return err
}

// MarshalJSON writes the entry, including the fields of a later version that
// UnmarshalJSON has kept.
func (e Entry) MarshalJSON() ([]byte, error) {
	type plain Entry
	return marshalWith(plain(e), e.unknown)
}

// unmarshalKeeping decodes into v, and returns the fields that v has not.
func unmarshalKeeping(text []byte, v any) (unknown map[string]json.RawMessage, err error) {
	if err := json.Unmarshal(text, v); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &unknown); err != nil {
		return nil, err
	}
	for name := range jsonNames(v) {
		delete(unknown, name)
	}
	return unknown, nil
}

func marshalWith(v any, unknown map[string]json.RawMessage) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil || len(unknown) == 0 {
		return text, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	for name, value := range unknown {
		fields[name] = value
	}
	return json.Marshal(fields)
}

// isPath reports whether object is an absolute, clean path.
func isPath(object string) bool { return filepath.IsAbs(object) && filepath.Clean(object) == object }
