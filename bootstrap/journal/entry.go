// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// Entry is one object that one step has changed.
type Entry struct {
	// Kind says which handler can undo it, as "PACKAGE/WHAT": "bpffs/mount".
	Kind string `json:"kind"`

	// Object says which one it is: a path, a key. Kind, Object and Step together
	// are unique in a journal.
	Object string `json:"object"`

	// Step is the plan's step that changed it. Begin fills it in.
	Step string `json:"step"`

	// Generation is that of the owner who began it last; 0: nobody in
	// particular. Begin fills it in, and Time.
	Generation int       `json:"generation,omitempty"`
	Time       time.Time `json:"time,omitzero"`

	// Boot is the boot with which the change goes away by itself, such as
	// [Journal.Boot] for a mount; empty: it outlives reboots.
	Boot string `json:"boot,omitempty"`

	// Namespace is the mount namespace that it was begun in. Begin fills it in.
	Namespace string `json:"namespace,omitempty"`

	// Before is what was there at the first Begin. After is how it was left or,
	// until Done, how it is meant to be left. Was is how it was left before it
	// was begun again.
	Before State  `json:"before"`
	After  State  `json:"after"`
	Was    *State `json:"was,omitempty"`
	Done   bool   `json:"done"`

	// Needs are objects without which this one does not work: they are undone
	// after it, and stay where it does.
	Needs []string `json:"needs,omitempty"`

	unknown map[string]json.RawMessage // fields of a later version
}

// State is what an object was, or is. The zero value is one that is absent.
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
	Value   string `json:"value,omitempty"`   // what the kind tells it by: a kernel's value, a mount's identity
}

// Same reports whether two states are the same, wherever their content is kept.
func (s State) Same(o State) bool {
	return s.Type == o.Type && s.Mode == o.Mode && s.UID == o.UID && s.GID == o.GID && s.Size == o.Size &&
		s.SHA256 == o.SHA256 && s.Target == o.Target && s.Value == o.Value
}

// Left reports whether now is how e says that its object was left. Before
// completion that is how it was to be left, with mode and owner not reached
// yet, or how it was left the time before.
func (e Entry) Left(now State) bool {
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

// again is e begun anew as now, in the running boot. What a reboot has undone
// starts with what is there now.
func (e Entry) again(now Entry, boot string) Entry {
	if e.Boot != "" && e.Boot != boot {
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
	return nil
}

// String is what the entry is about, such as "bpffs/mount /sys/fs/bpf".
func (e Entry) String() string { return e.Kind + " " + e.Object }

// UnmarshalJSON keeps the fields of a later version, for MarshalJSON.
func (e *Entry) UnmarshalJSON(text []byte) (err error) {
	type plain Entry
	e.unknown, err = unmarshalKeeping(text, (*plain)(e))
	return err
}

// MarshalJSON writes the entry with what UnmarshalJSON has kept.
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
