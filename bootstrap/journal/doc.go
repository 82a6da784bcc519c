// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package journal remembers what was changed on a node, so that another
// process, days later, can put back what was there before; and whose the node
// is, so that of two agents only the later one does.
//
// A [Journal] is one directory, for all actions of a program. A program opens it
// with the handlers of the packages that it uses, gives it to the plan and to
// each action, and undoes with it:
//
//	j, err := journal.Open("/var/lib/agent", journal.Options{
//		Owner:    podUID,
//		Handlers: []journal.Handler{bpffs.Handler{}, cgroup.Handler{}},
//	})
//	plan := bootstrap.Plan{Journal: j, Steps: []bootstrap.Step{
//		{Name: "bpffs", Action: bpffs.Mount{Journal: j}},
//	}}
//
// # Entries
//
// An [Entry] is one object that one step of a plan has changed: a file, a
// directory, a mount, a kernel value, or whatever else an action of yours
// changes. Its life:
//
//	Begin     what is there now and what shall be, on disk before it returns
//	          ... the change is made ...
//	Complete  what is there in the end
//	undoing   looks: as it was left? then it is put back; else left alone
//
// These rules always hold:
//
//   - What was there before is kept once, from the first Begin. However often the
//     object is changed after that, the original comes back.
//   - An entry begun and not completed (the process was killed between, or could
//     not read what it had changed) is decided by looking at the object.
//   - What is no longer as it was left belongs to somebody else: it stays, is
//     reported as [ErrChanged], and forgotten. What cannot be undone now stays
//     recorded, and so does what it needs.
//   - Entries are undone newest first, and one that needs others before those.
//   - Steps never undo each other. Where two have changed one object, undoing
//     the older one leaves its original to the newer.
//   - An entry of a kind that no handler knows stays, and is named.
//   - The directory goes with its last entry, if it was made here.
//
// # Owner
//
// The first apply of a process claims the node for [Options].Owner; later ones
// only verify that it still is. Who was superseded stays superseded: its applies
// and reverts change nothing, and match [ErrNotOwner]. A process whose node was
// uninstalled or taken over meanwhile gets [ErrRevoked], for it to end.
//
// # Needs
//
// A directory on the node that outlives reboots. It and its files have to belong
// to the process's user, and nobody else may write there: what is recorded is
// obeyed. Open resolves the path in the calling thread's mount namespace, and
// keeps the directory open: so a journal on the host, opened inside hostns.Do,
// serves actions on either side. It is durable as the file system is. On other
// systems than Linux boots, mount namespaces and locks are not told apart.
//
// Whoever changes a node holds the node's lock; the journal takes none for its
// entries. Within one process it may be used by several goroutines.
//
// # When not to use it
//
// For what needs no undoing, and for what one process both makes and removes.
package journal
