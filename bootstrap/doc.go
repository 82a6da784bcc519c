// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package bootstrap brings a node from whatever state it is in to the state
// that an agent needs before it can start, and takes that state away again.
//
// An [Action] is one state that a node can be brought to: a mounted file system, a
// sysctl, an installed file. A [Plan] is a list of them in the order in which they
// run. [Plan.Check] says what would change, [Plan.Apply] makes the changes and
// verifies that they took effect, and [Plan.Revert] undoes them, last step first,
// where the action is a [Reverter]. Each returns a [Report] that says what happened
// in each step.
//
// The plan starts no goroutine, writes no log and never undoes anything on its own:
// others may already depend on what it set up (a mounted bpffs holds pinned maps),
// so undoing is the caller's decision.
//
// What others have chosen, such as names and messages of servers, is in errors and
// changes. A report shows it so that no terminal obeys it; a program that prints more
// has [OneLine] and [Printable] for that.
//
// # Context and time
//
// A [Step.Timeout] and the caller's context reach an action only through the
// context that the action is given. The plan always waits for the action to return:
// a system call in progress is not abandoned. So the timeout does not bound an
// action that ignores its context.
//
// # Errors
//
// The failure of a step is a [*StepError], which names the step and the operation
// and wraps the action's own error. The errors of several steps are joined; use
// [errors.Is] and [errors.As]. [ErrNotConverged] means that an action was applied
// without an error but its Check still finds something to change: the kernel
// rewrote the value, a security module dropped the write, or somebody else writes
// to the same object.
//
// A failure has a stable code, such as "sysctl.read-only", in the StepError, in the
// report and its JSON, and in what [LogTrace] logs: it names the cause, so that those
// of many nodes can be grouped, whatever their texts say. It is that of a [Coder]
// among the action's errors, or a general one of the plan; see [Code]. CODES.md of
// this module lists its own, with cause and remedy.
//
// # Needs
//
// The package itself needs no capability, imports only the standard library and
// builds on every platform. The documentation of each action says what that action
// needs.
//
// # When not to use it
//
// A plan is a list of short steps on one node's shared kernel state. It is not a
// scheduler: nothing runs in parallel, and [Step.After] only asserts an order that
// the list already has. It keeps no state between runs: an action that needs to
// remember something in order to be undone records that itself.
package bootstrap
