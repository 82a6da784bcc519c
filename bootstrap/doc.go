// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package bootstrap brings a node from whatever state it is in to the state
// that an agent needs before it can start, and takes that state away again.
//
// A [Plan] is a list of steps in the order in which they run. [Plan.Check] reports what
// would change, [Plan.Apply] changes it, [Plan.Revert] undoes it, last step first, and
// [Plan.Uninstall] undoes everything that was ever recorded for the agent. Each returns a
// [Report] of what happened in each step. Where, for whom, and what remembers it are the
// plan's, said once:
//
//	plan := &bootstrap.Plan{
//		Host:   hostns.Host{Proc: "/hostproc"}, // zero: this process runs on the host
//		Ledger: &ledger.Ledger{Agent: "acme", Owner: podUID},
//		Gates:  []bootstrap.Step{{Name: "api-server", Gate: kube.APIServer(config)}},
//		Steps: []bootstrap.Step{
//			{Name: "bpffs", Wants: bpffs.Mount{}},
//			{Name: "agent", Wants: acme.Files{}, After: []string{"bpffs"}},
//		},
//	}
//	report, err := plan.Apply(ctx)
//
// The plan starts no goroutine, writes no log and never undoes anything on its own:
// others may already depend on what it set up (a mounted bpffs holds pinned maps),
// so undoing is the caller's decision.
//
// # Steps of your own
//
// What a step changes on the node are objects: files, mounts, kernel values. A step Wants
// some of them in some state, as a [ledger.Wanter] says, and package ledger does the rest:
// it looks, records, writes, reads back, shares an object with other agents, and undoes.
// Kinds of objects are described there. Every step with Wants is called in all the host's
// namespaces, and what it wants is recorded if the plan has a Ledger.
//
// An [Action] is for what has no objects, such as the status of a server. It is not
// recorded: either it has its own Undo ([Undoer]), which Revert calls at its place, or it
// cannot be undone. It is called in the host's namespaces that it names ([Hosted]). A [Gate]
// is something to wait for. Each of the three may also have an [Adviser]'s method. No other
// method is asked for, and so a wrapper hands on these three.
//
// An error of Wants means that the step can never work as it is, such as an invalid field
// or a missing input: it fails before anything is changed. If it matches [ledger.ErrMissing],
// another program must bring something first, and the steps that do not name this one in After
// go on. What has to be read on the plan's side, such as a token, is read by [Step].Prepare,
// for each run, with the same effect if it cannot be.
//
// # What comes when
//
// Apply waits for the Gates, while the node is neither locked nor claimed; then it calls
// Prepare, the plan's and each step's, checks all steps, takes the node's lock, claims the node
// for the ledger's owner, and applies step after step. A step that fails in the check of all,
// but for what is not there yet, leaves the node as it was. Where the check finds nothing to do or to record, and the owner has the node
// already, Apply is done without the lock. The ledger keeps the report of the last run that
// has taken the lock, as the first one of a process does, or failed.
//
// # What excludes what
//
// At any time, one process changes the node: Apply and Revert hold the node's lock, whatever
// the agent, if the plan has a Ledger, steps with Wants, or Hosted actions. The lock is a
// file on the host, the same for all: see hostns.Host. It is not held while a plan waits for
// gates, prepares, or checks: what it has found by then is looked at again under the lock.
// The kernel releases it when the process dies. A program that changes the node without a
// plan takes it by hostns.Host.Lock, never inside a plan.
//
// Over time, one owner has the node for an agent, and the ledger records which. This is
// not a lock: it lasts until another owner claims the node, or it is uninstalled. From
// then on, the plans of the previous owner change nothing, and their errors match
// [ledger.ErrNotOwner] or [ledger.ErrRevoked].
//
// Within a process, one goroutine at a time may run a plan. A reconcile.Loop runs it again and
// again, and repairs what changes in between.
//
// # Context and errors
//
// A [Step.Timeout] and the caller's context reach a step only through the context that it is
// given. The plan always waits for the step to return: a system call in progress is not
// abandoned.
//
// The failure of a step is a [*StepError], which names the step and the operation and wraps
// the step's own error. The errors of several steps are joined. [ledger.ErrRefused] means that
// something is still different after it was changed: the kernel rewrote the value, a
// security module dropped the write, or another program writes to the same object. A failure
// has a stable code, by which those of many nodes can be grouped: see [Code].
//
// Errors and changes contain text that others have chosen, such as names and messages of
// servers. A report escapes it for terminals; a program that prints more has [OneLine]
// and [Printable].
//
// # Needs
//
// The package itself needs no capability, imports only packages ledger and hostns and the
// standard library, and builds on every platform. The documentation of each step says what
// that needs, that of package hostns what it takes to enter a host. On systems other than
// Linux nothing is locked.
//
// # When not to use it
//
// A plan is a list of short steps on one node's shared kernel state. It is not a
// scheduler: nothing runs in parallel, and [Step.After] only asserts an order that
// the list already has. Between runs it keeps nothing but what its ledger records.
package bootstrap
