// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package ledger brings objects of a node to the states that the steps of agents want, and
// back.
//
// A leaf describes its objects by a [Kind], a struct of functions that read and write one
// object, and its steps by lists of [Want]. The ledger does the rest: it looks, records,
// writes, reads back, shares an object among agents, and undoes. [File] and [Dir] are kinds
// that every leaf uses.
//
//	book, err := (&ledger.Ledger{Agent: "acme", Owner: podUID}).Open(ctx)
//	...
//	err = book.Claim(ctx)
//	...
//	done, err := book.Apply(ctx, "config", ledger.Wants{List: []ledger.Want{want}})
//	...
//	undone, err := book.Undo(ctx, nil)
//
// A bootstrap.Plan does this for its steps, in the host's namespaces. A leaf that is used
// alone does its work by [Check] and [Apply], which record nothing.
//
// # One record for an object
//
// A record has the object's original, the state in which the agents left it, as it was read
// after the write, and the claims of all steps of all agents that want it. The last claim
// prevails, but a loose one yields. Undoing an agent drops its claims; as long as others
// remain, the object is as they want it, and after the last one the original comes back. An
// object that was found as wanted has the wanted state as its original.
//
//   - Before a write, the record says what the object is about to become, and how the
//     objects were that the write changes along. A run that was killed is settled by the
//     next one, which looks at the object: if it is neither as before nor as meant, the
//     kernel has stored the value in its own way ([Kind].Rounds), or else another program
//     has written it.
//   - An object that was changed along has a record as long as its cause has one.
//   - What another program writes becomes the original once an agent writes over it, unless
//     it is a state that an agent left or wanted there before (an older release, a backup),
//     it replaces a secret or something that others rewrite for the agent, or it has not
//     stood still for a second (half a file, a contest).
//   - An object that is no longer as any agent left it is not undone. It is reported, and
//     stays recorded until it is forgotten or is as it was before.
//   - Undoing goes from the newest to the oldest, but an object goes before those that it
//     needs, and what stays keeps what it needs. Whether something may go is asked of the
//     node as it will be ([Kind].Keeps).
//   - What ends with the boot is forgotten after it.
//   - What is inside a container is its agent's and that mount namespace's ([Book.Local]), and
//     is forgotten with it.
//
// # Owners
//
// An agent has one owner at a time, such as a pod, on whose behalf it is applied. The first
// apply of a process claims ([Book.Claim]): a new owner gets the next generation, and the
// previous one is superseded for good, so that the older pod of a rolling update changes and
// undoes nothing any more. What only keeps the node as another process of the owner has left it
// claims nothing ([Ledger].RepairOnly). A step that can tell that another agent has applied under
// this one's name is refused while the owner of that is alive ([Wants].Rival): as a pod of which
// the host has processes, or as the process that has claimed. An
// agent that was uninstalled and comes again is told from its former self by an ID, and an
// uninstall that was begun stops what runs beside it, until the next apply.
//
// # File
//
// The directory has one file, replaced as a whole: a line for each record, with its own
// checksum, after a head with the agents and a list of the objects. So the object of a
// damaged or missing line is known, and no other is stopped; the line itself is dropped with
// the next change. Contents over 4 KiB are kept beside the file by their SHA-256, and removed
// when no record names them. They are copies: into a link, whoever has the original open
// could still write. A name may hold any byte. A later version of the same schema only adds
// fields that this one may ignore, to the head, agents, records and claims, and they are
// kept.
//
// # Limits
//
// Which of two states came first is not always known. If an object is neither as before a
// killed write nor as meant, only the kernel can have made that of the write, so it counts
// as written where the kind rounds, and as another program's elsewhere. What another
// program wrote is the original from when an agent begins to write over it. Where a kind
// does not know when an object was changed, what another program has written stands still
// from the last write of an agent on. A write that undoes something and is killed leaves
// to the next run what it changed along; if its own object is forgotten first, the others
// keep what they have become, unless they have a record.
//
// # Needs
//
// Whoever calls Apply, Undo, Release or Forget must hold the node's lock. Check and Status
// need no lock: they settle nothing, and read again if the file was replaced meanwhile. A
// change is refused if another process has made one since the file was read. The state
// directory must belong to the process's user, and no other may write there. Errors
// of objects are joined. Do not use the package for what needs no undoing.
package ledger
