// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package configdir writes a configuration that package configresolve has resolved
// to a directory, in the layout in which the kubelet mounts a ConfigMap, and can
// undo that.
//
// Others may write to the directory too, such as to an emptyDir, which [Dir.Advise]
// says: it is opened once, symbolic links in it are not followed, no more of a file is
// read than what it is compared with, and with a Journal, a previous configuration of more than 8 MiB is
// not replaced, since it would have to be stored for Revert. The path is resolved
// in the mount namespace of the calling thread.
//
// Nothing here needs a capability or root, only write permission for the directory;
// but a Revert that restores a configuration of another owner needs CAP_CHOWN. The
// package leaves no goroutine behind.
//
// Errors name the directory. A configuration without keys does not replace one
// that has some: that is [ErrEmpty].
//
// Do not use it for secrets: files are written world-readable.
package configdir
