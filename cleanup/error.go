// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

// Error reports why an item was not removed. The errors of [Leftovers.Remove] and
// [Leftovers.Apply] join one for each such item. [errors.As] finds the first, also in the
// error of a plan or of an action in other namespaces; for all of them, follow Unwrap()
// error and Unwrap() []error.
type Error struct {
	// Item is the item that remains.
	Item Item

	// Err is the reason.
	Err error
}

// Error returns what was tried and why it failed, such as
// "remove link lxc12345: operation not permitted (needs CAP_NET_ADMIN)".
func (e *Error) Error() string { return e.Item.verb() + " " + e.Item.String() + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }
