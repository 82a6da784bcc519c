// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package hostpath sees to it that the files and directories that an agent
// expects on its node are there, with the right type: what a pod's hostPath
// volumes do, for an agent that is not started as a pod or whose first steps
// run before its volumes matter.
//
// [Action] checks a list of paths, makes those that may be made, and takes
// back later what it made. The types and their meaning are those of a hostPath
// volume (https://kubernetes.io/docs/concepts/storage/volumes/#hostpath).
//
// It acts on the mount namespace of the calling thread and starts no
// goroutine, so it may run inside another process's namespaces. Where the
// directories do not belong to the caller it needs CAP_DAC_OVERRIDE; an error
// says so. No particular kernel is needed, and every platform will do.
//
// A path that exists with the right type is accepted as it is: its mode, its
// owner and its content are nobody's business here. Do not use the package to
// repair them, nor for files with content.
package hostpath
