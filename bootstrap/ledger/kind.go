// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/printable"
)

// The errors that callers branch on.
var (
	ErrConflict   = code.New(code.LedgerConflict, "another agent wants it differently")
	ErrChanged    = code.New(code.LedgerChanged, "no longer as it was left")
	ErrUnreadable = code.New(code.LedgerUnreadable, "unreadable record")
	ErrNotOwner   = code.New(code.LedgerNotOwner, "the agent has another owner")
	ErrRevoked    = code.New(code.LedgerRevoked, "it no longer belongs to this owner")
	ErrNotApplied = code.New(code.LedgerNotApplied, "nothing was applied that could be kept as it is: apply it first")
	ErrNeeded     = errors.New("still needed")
	ErrMissing    = code.New(code.LedgerMissing, "another program has to bring it first")
	ErrRefused    = code.New(code.LedgerRefused, "written, but it is still different")

	errUnknownKind = code.New(code.LedgerUnknownKind, "recorded by a package that this program does not use")
	errTwoAgents   = code.New(code.LedgerTwoAgents, "two agents have the same name")
	errUntrusted   = code.New(code.LedgerUntrusted, "others could have written it")
)

// Kind is one sort of object, such as files or kernel values. Name, Read and Write are
// required; the other functions are nil where the kind has nothing to say.
//
// The functions are called on the calling thread, and start no goroutine.
type Kind struct {
	// Name is recorded, and so it never changes. Kinds with the same Space share their
	// objects' names: a path is a file or a directory, and never both. That of what is mounted
	// on a path is "mount". If empty, Space is Name.
	Name, Space string

	// Rounds means that an object is the kernel's. It may be read otherwise than it was
	// written, since the kernel stores it in its own way, and it may go by itself, as the
	// values of a link do: then there is nothing to bring back. An object with an identity
	// that the kernel gives, such as a mount, does not round: Met recognizes it.
	Rounds bool

	// Read returns the present state, which is zero if there is no object. Write makes that
	// state of the object, or removes it if the state is zero. It makes nothing else: a missing
	// directory is an object of its own, as [DirWants] lists them.
	Read  func(ctx context.Context, object string) (State, error)
	Write func(ctx context.Context, object string, to State) error

	// Met reports whether the object is as wanted; nil: if it is Same. Two agents agree if
	// what one wants, as a state, is as the other wants it.
	Met func(now State, w Want) bool
	// Same reports whether an object in state b is the one that was in state a; nil: if the
	// states are equal.
	Same func(a, b State) bool
	// Describe says in one line what Write does.
	Describe func(object string, from, to State) string
	// Contents returns, by their names, the files that a write replaces, as they are and as they
	// would be; nil: the object itself, if it is a file. Of an object that is not as wanted, it is
	// asked if a plan has Diff.
	Contents func(ctx context.Context, object string, from, to State) (before, after map[string]State, err error)

	// Along lists the objects that a write changes besides, with the states that they get.
	Along func(ctx context.Context, object string, to State) ([]Side, error)
	// Stage prepares a state beside the object, for content that is read only once, or is
	// tried before it takes effect. Without the directory that it goes into, the error
	// matches fs.ErrNotExist.
	Stage func(ctx context.Context, object string, to State) (*Staged, error)
	// Sweep removes what a killed write has left beside an object.
	Sweep func(ctx context.Context, object string) error
	// Keeps returns why an object cannot go, given the other objects' states after the
	// undoing; empty if it can. Then something on the node needs it, which is no failure. If
	// it is a failure, the error matches ErrChanged, and such an object can be left as it is.
	Keeps func(ctx context.Context, object string, after StateAfter) (why string, err error)
	// Lost returns why an original could not come back; empty if it could. Undoing then
	// leaves the object as it is.
	Lost func(object string, original State) (why string)
	// Parts lists the paths that are removed with an object that consists of several.
	Parts func(ctx context.Context, object string) (paths []string, err error)
	// Canonical returns the one name of an object that has several.
	Canonical func(object string) (string, error)
	// Owns returns an error for an object that an agent can never have made.
	Owns func(object string) error
	// Leave reports whether an object, as the caller asks, is left as it is and stays claimed
	// when the claim's step is undone.
	Leave func(ctx context.Context, object string, c Claim) bool
	// EndsWithBoot reports whether a reboot undoes what is made of the object. Where that is not
	// known, it does not: a record that outlives its object does no harm.
	EndsWithBoot func(object string) bool
	// Permission returns an error if this process could not write the object.
	Permission func(ctx context.Context, object string) error
	// Place returns where on the host the object is, and the type of the file system that it
	// is on, if that is known. Empty: it is nowhere. Nil: a path is where it says, and others
	// are nowhere.
	Place func(object string) (path, fstype string)
	// Find lists the objects on the node that carry a mark, as from [Book.Mark].
	Find func(ctx context.Context) ([]Marked, error)
}

// Marked is an object that says itself whose it is.
type Marked struct {
	Kind   string `json:"kind"` // set by the ledger
	Object string `json:"object"`
	Agent  string `json:"agent,omitempty"`
	Dir    string `json:"dir,omitempty"`    // the state directory that records it
	Remove string `json:"remove,omitempty"` // the command that removes it
}

// Side is an object that a write to another object changes along.
type Side struct {
	Kind   *Kind
	Object string
	To     State // as far as it is known beforehand

	Boot   bool   // it ends with this boot, even if the cause does not
	Change string // what a person should know beforehand, in one line
}

// Staged is a state that was prepared beside an object. One of its functions is called.
type Staged struct {
	State   State  // what Commit makes of the object
	Path    string // of the prepared file, which can be executed; empty: there is none
	Commit  func(ctx context.Context) error
	Discard func()
}

// StateAfter returns the state that an object will have after an undoing, if that changes it.
type StateAfter func(k *Kind, object string) (to State, changes bool)

// Want is an object as a step wants it.
type Want struct {
	Kind   *Kind
	Object string
	To     State // zero: there shall be none

	Loose     bool     // any object of To's type will do once it is there
	MayFail   bool     // a failure is no error
	Secret    bool     // no copy is kept of what it replaces
	Rewritten bool     // others rewrite it for the agent, and it stays the agent's
	Unnamed   bool     // it only matches a pattern: it is not claimed where it is as wanted
	NoAdopt   bool     // it is not adopted, even if the ledger says so of all files: see [Ledger].Adopt
	OwnCopy   bool     // what it replaces is the agent's own, under another name: it is no original
	Needs     []string // the IDs of objects that come before it, and go after it

	// Again is the ID of an object that, once an agent has made it, changes this one again at
	// each boot, and so needs it: what ends with the boot does not end before that object does.
	Again string

	// Ready returns what the node lacks for the object, such as what another step brings. It
	// is asked whenever the object is looked at, and must change nothing.
	Ready func(ctx context.Context) error
}

// Wants is what a step wants, in the order in which it is made.
type Wants struct {
	List []Want
	// Complete reports whether List has all objects that the step wants of a kind, such as
	// the plugins in a directory. Objects there that the step claimed before and no longer
	// lists are undone, unless the list is empty.
	Complete func(k *Kind, object string) bool
	// Rival returns why what the step has recorded must be another agent's of the same name; empty
	// if it need not be. As long as the owner that has applied it is alive, Check then returns an
	// error that matches ErrNotOwner, unless Ledger.TakeOver is set.
	Rival func(recorded []Record) (why string)
	// AtOnce means that nothing is written unless all that differs can be prepared.
	AtOnce bool
	// Kinds are those of which the step may have records although List has no such object now,
	// such as of a directory that is listed only while it is missing. [File] and [Dir] are known.
	Kinds []*Kind
	// Watch lists further paths on which depends what the step wants, such as others' files.
	// It may be set beside an error that matches [ErrMissing].
	Watch []string
}

// ID identifies the object among all of a node.
func (w Want) ID() string { return w.Kind.id(w.Kind.canonical(w.Object)) }

// id is the same for all kinds of a space. No space has a blank in its name.
func (k *Kind) id(object string) string { return k.space() + " " + object }

// space is that of the objects' names.
func (k *Kind) space() string { return cmp.Or(k.Space, k.Name) }

// canonical returns the object's one name. A name that cannot be resolved stays as it is: whoever
// records by it looks at the error of named.
func (k *Kind) canonical(object string) string {
	name, _ := k.named(object)
	return name
}

func (k *Kind) named(object string) (name string, err error) {
	if k.Canonical == nil {
		return object, nil
	}
	if name, err = k.Canonical(object); err != nil {
		return object, fmt.Errorf("resolve %s: %w", printable.Line(object), err)
	}
	return name, nil
}

// same is Same, which need not know what no object is.
func (k *Kind) same(a, b State) bool {
	if k.Same == nil || a.IsZero() || b.IsZero() {
		return a.Equal(b)
	}
	return k.Same(a, b)
}

// matches reports whether the object is as wanted, or of the wanted type if that is enough.
func (k *Kind) matches(now State, w Want) bool {
	switch {
	case w.Loose && !w.To.IsZero():
		return now.Type == w.To.Type
	case k.Met != nil && !w.To.IsZero() && !now.IsZero():
		return k.Met(now, w)
	}
	return k.same(now, w.To)
}

// agree reports whether two agents can want both.
func (k *Kind) agree(a, b Want) bool { return k.matches(a.To, b) || k.matches(b.To, a) }

// owns is Owns, and names the object.
func (k *Kind) owns(object string) error {
	if k.Owns == nil {
		return nil
	}
	if err := k.Owns(object); err != nil {
		return fmt.Errorf("%s %s: %w", k.Name, object, err)
	}
	return nil
}

// along lists the objects that a write changes besides, by their one names.
func (k *Kind) along(ctx context.Context, object string, to State) ([]Side, error) {
	if k.Along == nil {
		return nil, nil
	}
	sides, err := k.Along(ctx, object, to)
	for i := range sides {
		name, errName := sides[i].Kind.named(sides[i].Object)
		sides[i].Object, err = name, errors.Join(err, errName)
	}
	return sides, err
}

// describe is Describe, or names the kind and the object.
func (k *Kind) describe(object string, from, to State) string {
	switch {
	case k.Describe != nil:
		return k.Describe(object, from, to)
	case to.IsZero():
		return fmt.Sprintf("remove %s %s", k.Name, object)
	}
	return fmt.Sprintf("write %s %s", k.Name, object)
}

func (k *Kind) lost(object string, original State) string {
	if k.Lost == nil {
		return ""
	}
	return k.Lost(object, original)
}

func (k *Kind) permission(ctx context.Context, object string) error {
	if k.Permission == nil {
		return nil
	}
	return k.Permission(ctx, object)
}

func (k *Kind) endsWithBoot(object string) bool {
	return k.EndsWithBoot != nil && k.EndsWithBoot(object)
}
