// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"errors"
	"fmt"
)

// Action is a state that a node can be brought to, for what has no objects that a
// [ledger.Kind] describes: a server's status, a program's own. What it changes is not
// recorded. It can be undone if it is an [Undoer].
//
// The package bootstraptest has a conformance test for it. The signatures use
// standard library types only, so a package can offer an Action without
// importing this one.
type Action interface {
	// Check returns what Apply would change, without changing anything. No changes
	// means that the node is already in this state. A change is one short line in
	// the imperative, such as "remove the taint example.com/starting".
	Check(ctx context.Context) (changes []string, err error)

	// Apply brings the node to this state. It may be called when the node is already
	// in this state, and after an Apply that failed half-way. If ctx is already
	// done, it returns the context's error and changes nothing.
	Apply(ctx context.Context) error
}

// Gate is something that a plan waits for.
type Gate interface {
	// Wait returns once the gate is open. Its error says what it saw last.
	Wait(ctx context.Context) error

	// Check returns what Wait would wait for; nothing if the gate is open.
	Check(ctx context.Context) (waits []string, err error)
}

// Undoer is an Action that can undo what earlier Applies did, even in another process, days
// later. A plan's Revert calls Undo at the place of its step.
type Undoer interface {
	// CheckUndo returns what Undo would change, without changing anything. If that is
	// nothing, a plan does not call Undo.
	CheckUndo(ctx context.Context) (changes []string, err error)

	// Undo undoes that and nothing else. If there is nothing left to undo, it succeeds. If
	// ctx is already done, it returns the context's error and changes nothing.
	Undo(ctx context.Context) error
}

// Adviser is a ledger.Wanter, an Action or a Gate that can also warn an administrator of
// whatever works against it now, or will later.
type Adviser interface {
	// Advise returns what an administrator should know about the state but Apply
	// would not change, one line for each item. It changes nothing.
	Advise(ctx context.Context) (advice []string, err error)
}

// Hosted is an Action or a Gate that acts on the host, as each ledger.Wanter does.
type Hosted interface {
	// OnHost lists the host's namespaces that a plan enters to call the other methods, by
	// their names in /proc/PID/ns ("mnt", "net", "cgroup", "uts", "ipc"), and the files and
	// mounts that they change, as hostns.Host.CheckPlaces is asked for them: what would stay
	// in a container is refused.
	OnHost() (namespaces []string, places map[string]string)
}

// does returns what the step consists of, which may have the optional methods. Nil: nothing.
func (s *Step) does() any {
	switch {
	case s.Wants != nil:
		return s.Wants
	case s.Action != nil:
		return s.Action
	case s.Gate != nil:
		return s.Gate
	}
	return nil
}

// onHost says where on the host an action or a gate is called, and what it changes there.
func (s *Step) onHost() (namespaces []string, places map[string]string) {
	if hosted, ok := s.does().(Hosted); ok && !s.Local {
		return hosted.OnHost()
	}
	return nil, nil
}

// undoer returns what undoes the step's action. Nil: nothing does.
func (s *Step) undoer() Undoer {
	undoer, ok := s.Action.(Undoer)
	if !ok || s.Skip != "" {
		return nil
	}
	return undoer
}

// Func returns an Action that makes one change, such as "turn on the lamp": do makes it, unless
// isDone reports that it is made. A function that is nil returns an error that matches
// [errors.ErrUnsupported].
func Func(change string, isDone func(context.Context) (bool, error), do func(context.Context) error) Action {
	return function{change, isDone, do}
}

type function struct {
	change string
	isDone func(context.Context) (bool, error)
	do     func(context.Context) error
}

func (f function) Check(ctx context.Context) ([]string, error) {
	if f.isDone == nil {
		return nil, fmt.Errorf("%s: no function was given to check with: %w", f.change, errors.ErrUnsupported)
	}
	if isDone, err := f.isDone(ctx); isDone || err != nil {
		return nil, err
	}
	return []string{f.change}, nil
}

func (f function) Apply(ctx context.Context) error {
	if f.do == nil {
		return fmt.Errorf("%s: no function was given to apply with: %w", f.change, errors.ErrUnsupported)
	}
	return f.do(ctx)
}
