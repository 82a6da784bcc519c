// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package bootstrap brings a node from whatever state it is in to the state
// that an agent needs before it can start, and takes that state away again.
//
// An [Action] is one state that a node can be brought to: a mounted file system, a
// sysctl, an installed file. A [Plan] is a list of them in the order in which they
// run. [Plan.Check] reports what would change, [Plan.Apply] makes the changes and
// verifies that they took effect, and [Plan.Revert] undoes them, last step first;
// [Plan.RevertAll] undoes everything that was ever recorded, and needs no steps. Each
// returns a [Report] of what happened in each step.
//
// The plan holds, once for all of its steps, the node to change, the journal that
// remembers the original state and for which owner, and the gates to wait for:
//
//	plan := bootstrap.Plan{
//		Host: hostns.Host{Proc: "/hostproc"}, // hostns.Host{}: this process runs on it
//		Journal: &journal.Node{
//			Agent: "acme", Owner: podUID,
//			Handlers: []journal.Handler{bpffs.Handler{}, acme.Handler{}},
//		},
//		Gates: []bootstrap.Step{{Name: "api-server", Action: kube.APIServer(config)}},
//		Steps: []bootstrap.Step{
//			{Name: "bpffs", Action: bpffs.Mount{}},
//			{Name: "agent", Action: acme.Files{}, After: []string{"bpffs"}},
//		},
//	}
//	report, err := plan.Apply(ctx)
//
// The plan starts no goroutine, writes no log and never undoes anything on its own:
// others may already depend on what it set up (a mounted bpffs holds pinned maps),
// so undoing is the caller's decision.
//
// Errors and changes contain text that others have chosen, such as names and messages of
// servers. A report escapes it for terminals; a program that prints more has [OneLine]
// and [Printable].
//
// # An action of your own
//
// Check and Apply are enough for a plan without a Host and a Journal. With these, the
// plan has to know more before it changes anything, and an action declares it by
// implementing further interfaces:
//
//	Recorder  the kinds of entries that it records in the journal, or none
//	Hosted    the host's namespaces in which its methods are called
//	Placed    where it makes something, so that it is not made in a container instead
//	Reverter  that it can undo its own work, without a journal
//	Wrapper   the action inside, which is asked all of this
//
// It records its changes in journal.From(ctx) of package bootstrap/journal, with the
// context that the plan gives it. If nothing is to be recorded, that is a nil journal,
// whose methods do nothing. A handler undoes what was recorded:
//
//	func (l Link) Kinds() []string      { return []string{"acme/link"} }
//	func (l Link) Namespaces() []string { return []string{"net"} }
//
//	func (l Link) Apply(ctx context.Context) error {
//		j := journal.From(ctx)
//		e := journal.Entry{
//			Kind: "acme/link", Object: l.Name, Boot: j.Boot(), // a reboot removes it
//			Before: l.state(), // the zero value: it does not exist
//			After:  journal.State{Type: "link"},
//		}
//		if err := j.Begin(ctx, e); err != nil { // on disk, before the change
//			return err
//		}
//		if err := l.makeAndSetUp(); err != nil {
//			return err // begun: the handler's Look finds whether there is something to undo
//		}
//		return j.Complete(ctx, e)
//	}
//
//	// Look is the handler's: it returns what undoes the entry, or nothing if that is done.
//	func (h Handler) Look(ctx context.Context, p *journal.Pass, e journal.Entry) (journal.Undo, error)
//
// An action that repairs its own object calls Begin and Complete too, as if it made it
// anew: the state before the first change remains recorded, and is what comes back.
//
// To share an object with other agents of the node, an action also calls Journal.CheckWishes at the
// end of its Check, and Journal.Wish at the end of its Apply. [Func] makes an action of two
// functions; its methods In and Recording declare namespaces and kinds. An action that is
// Placed needs a type of its own.
//
// [Plan.Validate] refuses an action whose changes could not be undone: it is neither a
// Recorder nor a Reverter, the journal has no handler for a kind, or the handler acts in
// another namespace than the action. [Step].NoUndo allows it. An action that declares
// that it records, and does not, fails with [ErrUnrecorded].
//
// # What comes when
//
// Apply waits for the Gates, while the node is neither locked nor claimed; then it calls
// Prepare, checks all steps, takes the node's lock, has the journal claim the node for
// its owner, and applies step after step. A step that fails in the check of all leaves
// the node as it was. Where the check finds nothing to do, and the owner has the node
// already, Apply is done without the lock.
//
// # What excludes what
//
// At any time, one process changes the node: a plan with a Host holds the node's lock
// while it applies steps, and while it reverts, whatever its agent, and with or without
// a journal. The lock is a file on the host, the same for all: see hostns.Host. It is not
// held while a plan waits for gates, prepares, or checks: what it has found by then is
// looked at again under the lock. The kernel releases it when the process dies. A
// program that changes the node without a plan takes it by hostns.Host.Lock, never inside
// a plan.
//
// Over time, one owner has the node for an agent, and the journal records which. This is
// not a lock: it lasts until another owner claims the node, or it is uninstalled. From
// then on, the plans of the previous owner change nothing, and their errors match journal.ErrNotOwner
// or journal.ErrRevoked. It is looked at, and changed, with the lock held.
//
// Within a process, one goroutine at a time may run a plan. Work that goes on beside it, such
// as a guard, runs in [Plan.Inside], and takes the lock for what it repairs.
//
// # Context and time
//
// A [Step.Timeout] and the caller's context reach an action only through the
// context that the action is given. The plan always waits for the action to return:
// a system call in progress is not abandoned. So the timeout does not bound an
// action that ignores its context. A [Retry] in a step may wait for [MaxWaits], since the
// node is locked meanwhile; what takes longer to come is waited for by a gate.
//
// # Errors
//
// The failure of a step is a [*StepError], which names the step and the operation
// and wraps the action's own error. The errors of several steps are joined; use
// [errors.Is] and [errors.As]. [ErrNotConverged] means that an action was applied
// without an error but its Check still finds something to change: the kernel
// rewrote the value, a security module dropped the write, or another program writes to
// the same object.
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
// needs, that of package bootstrap/hostns what it takes to enter a host. On systems
// other than Linux nothing is locked.
//
// # When not to use it
//
// A plan is a list of short steps on one node's shared kernel state. It is not a
// scheduler: nothing runs in parallel, and [Step.After] only asserts an order that
// the list already has. Between runs it keeps nothing but what its journal records.
package bootstrap
