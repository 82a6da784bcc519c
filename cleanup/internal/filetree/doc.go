// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package filetree looks at files and directories, and removes them, through
// open directories.
//
// Symbolic links among the parents of a path that is given are followed if only root
// could have created them. The last element of that path and everything below it are not
// followed, and no mount is entered. A file is known by its inode: one that has its name
// by now is not touched, and the error matches [failure.ErrReplaced]. A tree of any width
// costs the same for each name; the directories above it are open meanwhile.
//
// It acts in the mount namespace of the calling thread and starts no goroutine.
package filetree
