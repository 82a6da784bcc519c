// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package configdir writes a configuration that package configresolve has resolved
// to a directory, in the layout in which the kubelet mounts a ConfigMap, and can
// remove it again. An earlier configuration that it replaces does not come back.
//
// The directory may be one that other users can write to, as an emptyDir is; if it is none,
// [Writer.Advise] reports it. The directory is opened once, symbolic links in it are not
// followed, and no more of a file is read than is compared. The path is resolved in the mount
// namespace of the calling thread.
//
// The package needs no capability and no root, only write permission for the
// directory. The package leaves no goroutine behind.
//
// Errors name the directory. A configuration without keys does not replace one that
// has keys: that is [ErrEmpty].
//
// Do not use it for secrets: files are written world-readable.
package configdir
