// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package bootstrap brings a node from whatever state it is in to the state
// that an agent needs before it can start, and takes that state away again.
//
// An [Action] is one state that a node can be brought to: a mounted file
// system, a sysctl, an installed file. A [Plan] is a list of them in the order
// in which they run. [Plan.Check] says what would change, [Plan.Apply] changes
// it and verifies that it took, [Plan.Revert] undoes it, last step first,
// where the action is a [Reverter]. Each returns a [Report] that says for each
// step what happened.
//
// The plan starts no goroutine, writes no log and never undoes anything by
// itself: many of the states it makes hold what others use meanwhile (a
// mounted bpffs holds pinned maps), so undoing is the caller's decision.
//
// # Context and time
//
// A [Step.Timeout] and the caller's context reach an action as its context,
// and only so. The plan always waits for the action to return: a system call
// in progress is not abandoned. An action that ignores its context is
// therefore not bounded by its timeout.
//
// # Errors
//
// What went wrong in a step is a [*StepError], which names step and operation
// and wraps the action's own error. The errors of several steps are joined;
// use [errors.Is] and [errors.As]. [ErrNotConverged] says that an action was
// applied without an error and its Check still differs: the kernel rewrote the
// value, a security module dropped the write, or somebody else writes the same
// object.
//
// # Needs
//
// The package itself needs no capability, imports only the standard library
// and builds on every platform. What an action needs, its own documentation
// says.
//
// # When not to use it
//
// A plan is a list of short steps on one node's shared kernel state. It is no
// scheduler: nothing runs in parallel and [Step.After] only asserts an order
// that the list already has. It keeps no state of its own between runs: what
// an action needs to remember in order to be undone, it records itself.
package bootstrap
