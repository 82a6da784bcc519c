// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package journal records what was changed on a node, so that another process can
// put back the original state, days later. It also records who owns the node, so
// that of two pods of an agent only the later one changes it, and what each of several
// agents wants, so that none takes away what another still needs.
//
// A [Node] says where the record is, on whose behalf, and which handlers undo what is in
// it: those of the packages that the program uses, and its own. A plan has it, and opens
// the directory on its host:
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
// An action is not given a journal: [From] returns the one that its context carries, in
// which what it records belongs to its step. It is nil, and records nothing, where the
// action is used alone, or its step is not to be undone. An action of your own says
// which kinds it records (bootstrap.Recorder) and in which of the host's namespaces it
// acts (bootstrap.Hosted), so that a plan can refuse it if no [Handler] could undo that
// there. One that loses its context, and so records nothing, fails.
//
// [Node.Open] opens a [Journal] for a program that has no plan, and [With] gives it to an
// action. [OnNode] is what an action asks that only wants to know.
//
// # Entries
//
// An [Entry] is one object that one step of a plan has changed: a file, a
// directory, a mount, a kernel value, or whatever else your own actions change. An
// entry goes through these stages:
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
//   - If an entry was begun but not completed (the process was killed in between,
//     or could not read what it had changed), the object itself shows whether there
//     is something to undo.
//   - An object that is no longer as the step left it belongs to somebody else: it
//     is not touched, and reported as [ErrChanged]. Its entry remains recorded as kept,
//     and each undoing reports it, until the object is as it was before, or somebody
//     says that it is left for good: [Journal.ForgetObject], [Node].AcceptKept. If
//     the step changes it again, what is there then is what undoing restores.
//   - An entry that cannot be undone now remains recorded, and so do the entries of
//     the objects that it needs.
//   - Entries are undone newest first, and an entry before the objects that it
//     needs.
//   - Steps never undo each other's changes. If two steps have changed the same
//     object and the older one is undone, the newer one's entry inherits the
//     original.
//   - An entry whose kind no handler knows remains recorded, and the error names
//     it.
//   - An entry is undone in the namespaces in which it was recorded.
//   - The journal's directory is removed with the last entry, if the journal made
//     it, and unless it is to remember what is left for good.
//
// # File
//
// An agent has a file of its own in the directory, AGENT.journal, of a line for each
// record, with its length and a checksum: see line.go. It is appended to, and replaced
// when most of it no longer counts, so that a change takes as long with ten entries as
// with ten thousand. What a killed writer has begun to append does not count. Anything
// else that is not as it was written is [ErrUnreadable]: nothing is undone by guess.
//
// A later version may add fields and, where it says that they need not be known, kinds of
// records. This one keeps them. What it relies on in entries, and so may others, the
// documentation of [Entry] lists.
//
// A journal has at most 20,000 entries of 64 KiB, 8 MiB in all, and keeps the content of
// 2,000 files, of 1 GiB each and 4 GiB in all. What exceeds that is an error, before
// anything is written.
//
// # Several agents
//
// Agents that share a node name the same directory, and each its own [Node].Agent. Each
// has its own file, owner and generation: an update of one refuses no other, and undoing is
// one agent's. These rules hold between them:
//
//   - An object is what its [Entry].Identity says, whichever package or step of whichever
//     agent changes it, and each agent that wants it has an entry of it.
//   - It stays until the last agent that wants it is undone. Then the original comes back
//     that the first one has found, whoever came first and whoever goes first.
//   - The directories that an object is in or on, and that an agent has made, stay with it.
//   - Agents that want an object to be different are in conflict. The later one gets
//     [ErrConflict] in its check, before anything is changed, and the earlier one's wish
//     stays, however often both apply. With [Node].Override the later one has its way, and
//     when it is undone what the earlier one wants comes back.
//   - What an agent found as it wants it counts too, without a change to tell of: it is
//     recorded as [Entry].Found, undoing only drops that, and another agent that wants it
//     to be different is in conflict. A value that a pattern matches does not count so.
//   - An agent whose file is damaged is stopped, and no other: what its file says before
//     the damage still counts for them.
//   - Of the node's lock there is one, for all.
//
// An action of your own takes part by calling [Journal.CheckWishes] at the end of its
// Check and [Journal.Wish] at the end of its Apply, with all that it wants, made or not.
//
// [Node.Agents] says which agents there are, when each was last seen, and whether it is
// alive. What one that has vanished wanted is given up by [Journal.Release], which needs
// none of its handlers, and returns what stays on the node since no other wants it.
//
// # Adopting
//
// What was there already, exactly as a step wants it, has not been made by the agent: it
// stays when the agent is undone. An agent that replaces an installer
// which kept no journal sets [Node].Adopt, at least for its first apply. Then what its
// actions name, and find as wanted when it first claims the node, is recorded as
// [Entry].Adopted, and undoing removes it: files, its own CNI plugins and configuration, a
// sysctl drop-in. A mount, a directory and a plugin that several agents bring are never
// adopted, nor is anything when a later owner claims the node. What is there and different
// is replaced as ever, and comes back. Without Adopt, a plan's check advises of what could
// be adopted.
//
// # Marks
//
// What can say of itself who made it does: the source of a mount, the first line of a
// drop-in. [Journal.Orphans] finds such objects that are not recorded: the journal that
// had them is another, or was lost.
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
// A directory on the node that outlives reboots. The directory and its files must
// belong to the process's user, and nobody else may have write permission there,
// because undoing does what the files say. The path is resolved in the host's mount
// namespace, and the directory above it stays open: so the journal serves actions both
// on the host and in the container. It is as durable as its file system. On systems
// other than Linux, boots and mount namespaces cannot be told apart.
//
// The journal has no lock of its own. Whoever claims the node, changes it or undoes
// something holds the node's: a plan does (package bootstrap says what excludes what),
// and a program without one takes it by hostns.Host.Lock. Within one process, several
// goroutines may use a journal.
//
// # When not to use it
//
// For changes that need no undoing, and for objects that the same process both
// makes and removes.
package journal
