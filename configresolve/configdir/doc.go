// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package configdir writes a configuration that package configresolve has resolved
// to a directory, in the layout in which the kubelet mounts a ConfigMap, and can
// remove it again. An earlier configuration that it replaces does not come back.
//
// Others may write to the directory too, such as to an emptyDir, which [Writer.Advise]
// says: it is opened once, symbolic links in it are not followed, and no more of a
// file is read than what it is compared with. The path is resolved in the mount
// namespace of the calling thread.
//
// Nothing here needs a capability or root, only write permission for the directory.
// The package leaves no goroutine behind.
//
// Errors name the directory. A configuration without keys does not replace one
// that has some: that is [ErrEmpty].
//
// Do not use it for secrets: files are written world-readable.
package configdir
