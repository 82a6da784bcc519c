// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"time"
)

// Action is a state that a node can be brought to.
//
// The package bootstraptest has a conformance test for it. The signatures use
// standard library types only, so a package can offer an Action without
// importing this one.
type Action interface {
	// Check returns what Apply would change, without changing anything. No changes
	// means that the node is already in this state. A change is one short line in
	// the imperative, such as "mount bpf on /sys/fs/bpf" or "set net.ipv4.ip_forward
	// = 1 (is 0)".
	Check(ctx context.Context) (changes []string, err error)

	// Apply brings the node to this state. It may be called when the node is already
	// in this state, and after an Apply that failed half-way. If ctx is already
	// done, it returns the context's error and changes nothing.
	Apply(ctx context.Context) error
}

// Reverter is an Action that can be undone, even by another process, days after it
// was applied.
type Reverter interface {
	Action

	// Revert undoes what earlier Applies did and nothing else. If there is nothing
	// left to undo, it succeeds. An error that matches [errors.ErrUnsupported] means
	// that there is nothing this action can revert: a plan shows its text and does
	// not count it as a failure. If ctx is already done, Revert returns the context's
	// error and changes nothing.
	Revert(ctx context.Context) error
}

// Adviser is an Action that can also warn an administrator of whatever works against
// it now, or will later.
type Adviser interface {
	Action

	// Advise returns what an administrator should know about the state but Apply
	// would not change, one line for each item. It changes nothing.
	Advise(ctx context.Context) (advice []string, err error)
}

// CheckReverter is a Reverter that can list what Revert would undo.
type CheckReverter interface {
	Reverter

	// CheckRevert returns what Revert would undo, without changing anything. No changes
	// means that there is nothing to undo.
	CheckRevert(ctx context.Context) (changes []string, err error)
}

// Recorder is an Action that declares what it records in a plan's journal.
type Recorder interface {
	Action

	// Kinds lists the kinds of journal entries that Apply may make. Each needs a
	// handler that undoes it. None means that Apply makes nothing that could be undone:
	// it waits for something, or looks at it.
	Kinds() []string
}

// Hosted is an Action whose objects are in namespaces of the host.
type Hosted interface {
	Action

	// Namespaces lists those that a plan enters to call the other methods, by their
	// names in /proc/PID/ns: "mnt", "net", "cgroup". None means that the objects are on
	// this side: in the process's own namespaces, or in memory.
	Namespaces() []string
}

// Placed is an Action that makes files or mounts on the host.
type Placed interface {
	Action

	// Places lists the paths at which Apply makes something, each with the type of
	// the file system that it mounts there, or "" for files, and /proc/sys/net if it
	// sets values of a network namespace. A plan refuses an action
	// that would make them in the container that the process is in.
	Places() map[string]string
}

// Validator is an Action that can validate its own fields without looking at the node.
// Such an error is a failure of the check even after steps that would change something.
type Validator interface {
	Action
	Validate() error
}

// Waiter is an Action whose Apply may wait for other programs: a gate, or a [Retry].
type Waiter interface {
	Action

	// Waits returns how long Apply may wait in all. In a plan's step that may be MaxWaits.
	Waits() time.Duration
}

// PermissionChecker is an Action that can find out beforehand that the process lacks a
// permission that Apply needs.
type PermissionChecker interface {
	Action

	// CheckPermission returns the error that Apply would meet because a capability is
	// missing, or something may not be written. It changes nothing. A plan's Apply asks
	// each action that has something to change, before anything is changed, and so does its
	// Check in a process of root's. Other users may look without privileges.
	CheckPermission(ctx context.Context) error
}

// Wrapper is an Action around another one: a plan asks the inner one what it records and
// where its objects are, unless the wrapper has those methods itself. A Revert method of
// the wrapper proves nothing, since it may have one whatever it is around: whether there
// is something to revert depends on the innermost action.
type Wrapper interface {
	Action
	Unwrap() Action
}

// as finds the outermost of the actions wrapped in a that is a T.
func as[T Action](a Action) (found T, ok bool) {
	for a != nil {
		if found, ok = a.(T); ok {
			return found, true
		}
		w, wraps := a.(Wrapper)
		if !wraps {
			break
		}
		a = w.Unwrap()
	}
	return found, false
}

// innermost returns the action around which all others in a are.
func innermost(a Action) Action {
	for {
		w, wraps := a.(Wrapper)
		if !wraps {
			return a
		}
		a = w.Unwrap()
	}
}
