// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slipway-dev/slipway/internal/filemode"
)

// Entry is one object that one step has changed.
//
// Other agents and later versions rely on these fields, so their meaning does not change:
// Identity; After (the state that the step wants); Any and Loose (how much of it the step
// wants); Before (the original, with its content in Content or in the file blob.SHA256
// beside the journal); Boot; Turn (the agent that prevails); Over (the overridden state);
// Released (the object is no longer wanted); Adopted and Found. A Secret original cannot
// come back: undoing removes its replacement.
type Entry struct {
	// Kind selects the handler that can undo the entry, in the form "PACKAGE/WHAT", such
	// as "bpffs/mount".
	Kind string `json:"kind"`

	// Object names the object: a path or a key, for example. Kind, Object and Step
	// together are unique in a journal.
	Object string `json:"object"`

	// Identity identifies the object, whichever package changes it: "file /etc/x", "mount
	// /sys/fs/bpf", "sysctl net.ipv4.ip_forward". Entries of one identity are about one
	// object. If empty, Begin fills it in: WHAT and the object for the kinds
	// PACKAGE/file, PACKAGE/dir, PACKAGE/mount, PACKAGE/pin and PACKAGE/layout, with
	// symbolic links in the path resolved, otherwise the whole kind and the object. If
	// the kind's handler has no namespaces, and the process is in a container, the
	// agent's name is put in front: the same path in another agent's container is another
	// object.
	Identity string `json:"identity,omitempty"`

	// Step is the plan's step that changed the object. Begin fills it in.
	Step string `json:"step"`

	// Generation is the generation of the owner that last began the entry, or 0 if that
	// process had no owner. Begin fills in both Generation and Time.
	Generation int       `json:"generation,omitempty"`
	Time       time.Time `json:"time,omitzero"`

	// Boot is the boot that the change ends with, such as [Journal.Boot] for a
	// mount. Empty if the change outlives reboots.
	Boot string `json:"boot,omitempty"`

	// Namespace is the mount namespace in which the entry was begun. Begin fills it
	// in.
	Namespace string `json:"namespace,omitempty"`

	// Namespaces are the host namespaces in which the object lies, which are entered to
	// undo it: those of its kind's handler. Begin fills them in.
	Namespaces []string `json:"namespaces,omitempty"`

	// Before is the object's state at the first Begin. After is the state in which
	// the step left it or, until Done, means to leave it. Was is the state in which
	// the step had left it before the entry was begun again.
	Before State  `json:"before"`
	After  State  `json:"after"`
	Was    *State `json:"was,omitempty"`
	Done   bool   `json:"done"`

	// Any means that the step wants an object of After's type, whatever its other
	// properties: other programs rewrite it, and it still counts as made by the step.
	// After then remains the state with which the entry was last begun.
	Any bool `json:"any,omitempty"`

	// Kept means that a revert found the object in neither state: it now has another
	// owner. Later reverts report it again, until it is as before.
	Kept bool `json:"kept,omitempty"`

	// Needs lists objects that this one depends on: they are undone after it, and
	// not undone if it cannot be.
	Needs []string `json:"needs,omitempty"`

	// Turn orders the entries of several agents about one object: the higher one is
	// later, and prevails. Begin fills it in.
	Turn int `json:"turn,omitempty"`

	// Over is the state that other agents want, if the entry overrides it. Begin fills it
	// in.
	Over *State `json:"over,omitempty"`

	// Released means that the agent no longer wants the object, but others do. The entry
	// remains as a record of the object's state.
	Released bool `json:"released,omitempty"`

	// Loose means that the step accepts any state in which other agents put the object. A
	// state that no agent left has another owner, though.
	Loose bool `json:"loose,omitempty"`

	// Adopted means that the object already existed, as the step wants it, and was
	// adopted as the agent's own on request.
	Adopted bool `json:"adopted,omitempty"`

	// Found means that the object was found as the step wants it, and nothing was
	// changed: the entry informs other agents of the wish, and undoing leaves the object
	// as it is. Before and After are that state. [Journal.Entries] does not list such
	// entries.
	Found bool `json:"found,omitempty"`

	also []State // in which agents that no longer want the object have left it

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
	Secret  bool   `json:"secret,omitempty"`  // a file's content is a credential, and is not kept: see [File]; Same ignores it
	Target  string `json:"target,omitempty"`  // of a symbolic link
	Value   string `json:"value,omitempty"`   // the value that a kind compares: a kernel value, a mount's identity
	File    string `json:"file,omitempty"`    // identifies one of several equal files, for kinds that need it; Same ignores it

	// Xattrs are the extended attributes of a file or directory that control access to it
	// and its privileges: security.selinux, security.SMACK64, security.capability,
	// system.posix_acl_access and system.posix_acl_default. Nil if they were not read;
	// empty if it has none.
	Xattrs map[string][]byte `json:"xattrs,omitzero"`

	unknown map[string]json.RawMessage // fields of a later version
}

// FileState returns the state of a regular file with this content and mode, owned by the
// calling user: the intended state for [Files.Begin].
func FileState(content []byte, mode fs.FileMode) State {
	sum := sha256.Sum256(content)
	return State{
		Type: "file", Mode: filemode.Unix(mode), UID: max(os.Geteuid(), 0), GID: max(os.Getegid(), 0),
		Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]),
	}
}

// emptySHA256 is the hash of no content.
const emptySHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// sizeless reports whether the content is known but its size is not set.
func (s State) sizeless() bool { return s.Size == 0 && s.SHA256 != "" && s.SHA256 != emptySHA256 }

// Same reports whether two states are the same, wherever their content is stored.
// Extended attributes are compared if both states have them.
func (s State) Same(o State) bool {
	return s.Type == o.Type && s.Mode == o.Mode && s.UID == o.UID && s.GID == o.GID && s.Size == o.Size &&
		s.SHA256 == o.SHA256 && s.Target == o.Target && s.Value == o.Value &&
		(s.Xattrs == nil || o.Xattrs == nil || maps.EqualFunc(s.Xattrs, o.Xattrs, bytes.Equal))
}

// MatchesAfter reports whether the step left its object in the state now, according to e.
// As long as e is not completed, that is the intended state with any mode, owner and
// extended attributes, since these are set last, or the state in which the step had left
// the object before it began e again, or the state of other agents that it was about to
// override. If e has Any, only the type of the intended state counts.
func (e Entry) MatchesAfter(now State) bool {
	if e.Any && now.Type == e.After.Type || slices.ContainsFunc(e.also, now.Same) {
		return true
	}
	if e.Done {
		return now.Same(e.After)
	}
	after := e.After
	if after.sizeless() {
		after.Size = now.Size
	}
	after.Mode, after.UID, after.GID, after.Xattrs = now.Mode, now.UID, now.GID, now.Xattrs
	return now.Same(after) || e.Was != nil && now.Same(*e.Was) || e.Over != nil && now.Same(*e.Over)
}

// LeftAs lists the states in which agents have left the object, the entry's own first:
// for a kind that distinguishes equal files.
func (e Entry) LeftAs() []State { return append([]State{e.After}, e.also...) }

// id identifies an entry.
type id struct{ kind, object, step string }

func (e Entry) id() id { return id{e.Kind, e.Object, e.Step} }

// again returns e, begun again as now, in the running boot. An entry that a reboot
// has undone, that is kept, or that was found as wanted, starts afresh, with the present state as its Before.
func (e Entry) again(now Entry, boot string) Entry {
	if e.Kept || e.Released || e.Found || e.Boot != "" && e.Boot != boot {
		return now
	}
	if e.Boot == "" {
		now.Boot = ""
	}
	now.Before, now.Was, now.unknown, now.Adopted = e.Before, e.Was, e.unknown, e.Adopted
	now.Turn, now.Over = max(now.Turn, e.Turn), cmp.Or(now.Over, e.Over)
	now.After.inherit(e.After)
	if e.Done {
		now.Was = &e.After
	}
	return now
}

// completed returns e, whose object was left in the state after.
func (e Entry) completed(after State) Entry {
	if e.Any {
		after = e.After
	}
	after.inherit(e.After)
	e.After, e.Was, e.Done = after, nil, true
	return e
}

// inherit takes over the fields of a later version for the same state.
func (s *State) inherit(was State) {
	if s.unknown == nil && s.Same(was) {
		s.unknown = was.unknown
	}
}

// none are the attributes of most files. It must not be modified.
var none = map[string][]byte{}

// intern makes e share its common strings with the other entries, by words.
func (e *Entry) intern(words map[string]string) {
	for _, s := range []*State{&e.Before, &e.After} {
		if s.Xattrs != nil && len(s.Xattrs) == 0 {
			s.Xattrs = none
		}
	}
	for _, s := range []*string{&e.Kind, &e.Step, &e.Boot, &e.Namespace, &e.Before.Type, &e.After.Type} {
		known, ok := words[*s]
		if !ok && len(words) < 1000 {
			known, words[*s] = *s, *s
			ok = true
		}
		if ok {
			*s = known
		}
	}
}

// identity is the Identity of an entry that has none. Symbolic links that lead to a path
// are resolved.
func (e Entry) identity() string {
	_, what, _ := strings.Cut(e.Kind, "/")
	switch what {
	case "file", "dir", "mount", "pin", "layout":
		paths := spellings(e.Object)
		return what + " " + paths[len(paths)-1]
	}
	return e.Kind + " " + e.Object
}

func (e Entry) validate() error {
	if e.Kind == "" || e.Object == "" || e.Step == "" {
		return errors.New("an entry has no kind, no object or no step")
	}
	for _, s := range e.kept() {
		if s.Blob != "" && !isBlob(s.Blob) {
			return fmt.Errorf("%s: kept content %q is not a file beside the journal", e.Object, s.Blob)
		}
	}
	return e.validText()
}

// kept returns the states that may be restored.
func (e Entry) kept() []State {
	if e.Over != nil {
		return []State{e.Before, *e.Over}
	}
	return []State{e.Before}
}

// validText returns an error if JSON cannot hold the entry: text that is not UTF-8 would
// come back as another name, or link elsewhere.
func (e Entry) validText() error {
	texts := append([]string{e.Kind, e.Object, e.Step, e.Identity}, e.Needs...)
	for _, s := range append(e.kept(), e.After) {
		texts = append(texts, s.Type, s.Target, s.Value, s.File)
	}
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return fmt.Errorf("record %q: %q is not UTF-8, and a journal holds only UTF-8", e.Object, text)
		}
	}
	return nil
}

// String returns the kind and the object, such as "bpffs/mount /sys/fs/bpf".
func (e Entry) String() string { return e.Kind + " " + e.Object }

// UnmarshalJSON keeps the fields of a later version, for MarshalJSON.
func (e *Entry) UnmarshalJSON(text []byte) (err error) {
	type plain Entry
	e.unknown, err = unmarshalKeeping(text, (*plain)(e), entryFields())
	return err
}

// MarshalJSON writes the entry, including the fields of a later version that
// UnmarshalJSON has kept.
func (e Entry) MarshalJSON() ([]byte, error) {
	type plain Entry
	return marshalWith(plain(e), e.unknown)
}

// UnmarshalJSON keeps the fields of a later version, for MarshalJSON.
func (s *State) UnmarshalJSON(text []byte) (err error) {
	type plain State
	s.unknown, err = unmarshalKeeping(text, (*plain)(s), stateFields())
	return err
}

// MarshalJSON writes the state, including the fields of a later version.
func (s State) MarshalJSON() ([]byte, error) {
	type plain State
	return marshalWith(plain(s), s.unknown)
}

// isPath reports whether object is an absolute, clean path.
func isPath(object string) bool { return filepath.IsAbs(object) && filepath.Clean(object) == object }
