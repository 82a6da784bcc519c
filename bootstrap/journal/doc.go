// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package journal records the changes made to a node, so that another process can restore
// the original state days later. It also records the node's owner, so that of two pods of
// an agent only the later one changes the node, and the wishes of each of several agents,
// so that no agent removes an object that another still needs.
//
// A [Node] configures the directory of the record, its owner, and the handlers that undo
// its entries: those of the packages that the program uses, and its own. A plan has a
// Node, and opens the directory on its host:
//
//	plan := bootstrap.Plan{
//		Host: hostns.Host{Proc: "/hostproc"},
//		Journal: &journal.Node{
//			Agent:    "acme",
//			Owner:    podUID,
//			Handlers: []journal.Handler{bpffs.Handler{}, journal.Files{Kind: "acme"}},
//		},
//		Steps: []bootstrap.Step{{Name: "bpffs", Action: bpffs.Mount{}}},
//	}
//
// An action gets its journal from its context: [From] returns it, and its records belong
// to the action's step. The journal is nil, and records nothing, if the action is used
// alone or its step needs no undoing. An action of your own declares the kinds that it
// records (bootstrap.Recorder) and the host namespaces in which it acts
// (bootstrap.Hosted), so that a plan can refuse it if no [Handler] could undo those kinds
// there. An action that loses its context, and so records nothing, fails.
//
// [Node.Open] opens a [Journal] for a program without a plan, and [With] passes it to an
// action. Actions that only read the journal call [OnNode].
//
// # Entries
//
// An [Entry] is one object that one step of a plan has changed: a file, a directory, a
// mount, a kernel value, or any other object that your own actions change. An entry goes
// through these stages:
//
//	Begin     records the present state and the intended one, on disk before it returns
//	          ... the change is made ...
//	Complete  records the state after the change
//	undoing   restores the original, if the object is still as the step left it
//
// For a file, [Files.Write] does the first two and the change.
//
// These rules always hold:
//
//   - The state before the change is recorded once, by the first Begin. However
//     often the step changes the object after that, undoing restores the original.
//   - If an entry was begun but not completed (the process was killed in between, or
//     could not read the changed object), the object itself shows whether there is
//     something to undo.
//   - An object that is no longer as the step left it has another owner: it is not
//     touched, and reported as [ErrChanged]. Its entry remains recorded as kept, and
//     each undoing reports it, until the object is as it was before, or is left for good
//     on request: [Journal.ForgetObject], [Node].AcceptKept. If the step changes it
//     again, undoing restores the state before that change.
//   - An entry that cannot be undone now remains recorded, and so do the entries of
//     the objects that it needs.
//   - Entries are undone newest first, and an entry before the objects that it
//     needs.
//   - Steps never undo each other's changes. If two steps have changed the same
//     object and the older one is undone, the newer one's entry inherits the
//     original.
//   - An entry whose kind has no handler remains recorded, and the error names it.
//   - An entry is undone in the namespaces in which it was recorded.
//   - The journal's directory is removed with the last entry, if the journal made
//     it, unless it has to remember objects left for good.
//
// # File
//
// An agent has a file of its own in the directory, AGENT.journal, of a line for each
// record, with its length and a checksum: see line.go. Changes are appended, and the file
// is replaced when most of it is obsolete, so that a change takes as long with ten
// entries as with ten thousand. An incomplete line of a killed writer is ignored. Any
// other damage is [ErrUnreadable]: nothing is undone by guess.
//
// A later version may add fields, and kinds of records that it marks as ignorable. This
// version preserves them. The documentation of [Entry] lists the fields that this version
// and others may rely on.
//
// A journal has at most 20,000 entries of 64 KiB, 8 MiB in all, and keeps the content of
// 2,000 files, of 1 GiB each and 4 GiB in all. Exceeding a bound is an error, before
// anything is written.
//
// # Several agents
//
// Agents that share a node use the same directory, each with its own [Node].Agent. Each
// has its own file, owner and generation: an update of one does not affect the others,
// and undoing concerns one agent. These rules hold between them:
//
//   - An object is identified by its [Entry].Identity, whichever package or step of
//     whichever agent changes it, and each agent that wants it has an entry for it.
//   - It stays until the last agent that wants it is undone. Then the original that the
//     first agent found comes back, in whichever order the agents came and go.
//   - The directories that an object is in or on, and that an agent has made, stay with it.
//   - Agents that want an object to be different are in conflict. The later one gets
//     [ErrConflict] in its check, before anything is changed, and the earlier one's wish
//     stays in force, however often both apply. With [Node].Override the later one
//     prevails, and when it is undone the earlier one's wish is restored.
//   - An object that an agent found as wanted counts too, without any change: it is
//     recorded as [Entry].Found, undoing only drops the record, and another agent that
//     wants it to be different is in conflict. A value that only matches a pattern is
//     not recorded.
//   - Only the agent whose file is damaged is stopped: the records before the damage
//     still count for the others.
//   - All agents share one node lock.
//
// An action of your own takes part by calling [Journal.CheckWishes] at the end of its
// Check and [Journal.Wish] at the end of its Apply, with all objects that it wants, made
// or not.
//
// [Node.Agents] lists the agents, when each was last seen, and whether it is alive.
// [Journal.Release] gives up the wishes of a vanished agent: it needs none of the agent's
// handlers, and returns the entries of the objects that stay on the node although no
// other agent wants them.
//
// # Adopting
//
// An object that already existed, exactly as a step wants it, was not made by the agent:
// it stays when the agent is undone. An agent that replaces an installer which kept no
// journal sets [Node].Adopt, at least for its first apply. Then objects that its actions
// name, and find as wanted when it first claims the node, are recorded as
// [Entry].Adopted, and undoing removes them: files, its own CNI plugins and
// configuration, a sysctl drop-in. A mount, a directory and a plugin that several agents
// bring are never adopted, nor is anything when a later owner claims the node. Existing
// objects that differ are replaced as usual, and come back. Without Adopt, a plan's check
// lists the objects that could be adopted as advice.
//
// # Marks
//
// Objects that can carry the name of their maker do: a mount in its source, a drop-in in
// its first line. [Journal.Orphans] finds such objects that are not recorded: they belong
// to another journal, or theirs was lost.
//
// # Owner
//
// The first apply of a process claims the node for [Node].Owner; later applies
// only verify that this owner still has it. An owner that was superseded remains
// so: its applies and reverts change nothing, and their errors match [ErrNotOwner].
// If the node was uninstalled or taken over since a process first applied, that
// process gets [ErrRevoked] and should end. An apply that finds nothing to do counts.
//
// # Needs
//
// A directory on the node that outlives reboots. The directory and its files must belong
// to the process's user, and no other user may have write permission there, because
// undoing follows the files. The path is resolved in the host's mount namespace, and the
// directory above it stays open: so the journal serves actions both on the host and in
// the container. It is as durable as its file system. On systems other than Linux, boots
// and mount namespaces are indistinguishable.
//
// The journal has no lock of its own. A process that claims the node, changes it or
// undoes entries must hold the node's lock: a plan does (package bootstrap documents
// which operations exclude each other), and a program without a plan takes it with
// hostns.Host.Lock. Within one process, several goroutines may use a journal.
//
// # When not to use it
//
// For changes that need no undoing, and for objects that the same process both
// makes and removes.
package journal
