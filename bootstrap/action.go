// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import "context"

// Action is a state that a node can be brought to.
//
// The package bootstraptest has a conformance test for it. The signatures use
// standard library types only, so a package can offer an Action without
// importing this one.
type Action interface {
	// Check says what Apply would change, without changing anything. No changes
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

// Adviser is an Action that can also warn an administrator: about what works
// against it now, or will later.
type Adviser interface {
	Action

	// Advise returns what an administrator should know about the state but Apply
	// would not change, one line for each item. It changes nothing.
	Advise(ctx context.Context) (advice []string, err error)
}

// CheckReverter is a Reverter that can say beforehand what Revert would undo.
type CheckReverter interface {
	Reverter

	// CheckRevert says what Revert would undo, without changing anything. No changes
	// means that there is nothing to undo.
	CheckRevert(ctx context.Context) (changes []string, err error)
}
