// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package hostlocal releases the addresses that CNI's host-local plugin holds for
// sandboxes of pods that the container runtime no longer knows.
//
//	store := hostlocal.Store{Network: "agent", Sandboxes: endpoint.SandboxIDs} // of package cri
//	err := store.Apply(ctx)
//
// host-local reserves an address by a file, and releases it when the runtime says
// that a sandbox goes. Where nobody says so (the node lost power, the plugin was
// missing, the runtime's state was removed) the file stays, at each such time a few
// more, until the range is used up and no pod starts. A file that a power cut left
// empty is never released at all: it is moved aside, to NAME.corrupt.
//
// # What is released
//
// An address whose file names a sandbox that the runtime does not list, and is older
// than [Store.MinAge], also by the clock as it ran before it was set forward since the
// boot. The runtime is asked after the store was read, and each file is
// read again under host-local's own lock, just before it is removed: a sandbox that
// came meanwhile keeps its address. A runtime that does not answer says nothing about
// its sandboxes: that is an error, and nothing is released.
//
// Nothing of this is undone, so there is no journal: the address belongs to nobody.
//
// # What it needs
//
// Linux, and the right to write to the directory: CAP_DAC_OVERRIDE or the same owner.
// On other systems Apply returns an error matching [errors.ErrUnsupported].
//
// # When not to use it
//
// Where others than the pods of this runtime have addresses of the same network:
// containers of podman, nerdctl or cnitool are no sandboxes, and would lose theirs.
package hostlocal
