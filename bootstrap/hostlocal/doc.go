// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package hostlocal releases the addresses that CNI's host-local plugin holds for
// sandboxes of pods that the container runtime no longer knows.
//
//	store := hostlocal.Store{Network: "agent", Sandboxes: endpoint.SandboxIDs} // of package cri
//	err := store.Apply(ctx)
//
// host-local reserves an address with a file, and releases it when the runtime reports
// that a sandbox is deleted. Without such a report (the node lost power, the plugin was
// missing, the runtime's state was removed) the file stays. Each time a few more stay,
// until the range is used up and no pod starts. A file that a power cut left empty is
// never released at all: it is moved aside, to NAME.corrupt.
//
// # Which addresses are released
//
// An address whose file names a sandbox that the runtime does not list, and is older than
// ten minutes, even by the clock as it ran before it was set forward since the boot.
// The runtime is asked after the store is read, and each file is read again under
// host-local's own lock, just before it is removed: a sandbox created meanwhile keeps its
// address. If the runtime does not answer, that is an error, and nothing is released.
//
// None of this is undone, and nothing is recorded: the address was not in
// use.
//
// # What it needs
//
// Linux, and the right to write to the directory: CAP_DAC_OVERRIDE or the same owner.
// On other systems Apply returns an error matching [errors.ErrUnsupported].
//
// # When not to use it
//
// If the network also has addresses of others than the pods of this runtime: containers
// of podman, nerdctl or cnitool are not sandboxes, and would lose theirs.
package hostlocal
