// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package hostpath makes sure that the files and directories that an agent expects
// on its node exist and have the right type. It does what hostPath volumes do for a
// pod, for an agent that does not run as a pod or whose first steps run before its
// volumes matter.
//
// [Paths] checks a list of paths, and makes the missing ones that may be made. Undoing a plan
// removes what was made if it is still as it was made and, in the case of a directory, empty;
// but never /run/xtables.lock, since a process may have it locked. The types and their meaning are those of a hostPath
// volume (https://kubernetes.io/docs/concepts/storage/volumes/#hostpath).
//
// [Content] writes one file with given content, mode and owner, such as a certificate, and
// [Kubeconfig] one with which CNI plugins reach the API server.
//
// It acts on the mount namespace of the calling thread and starts no goroutine, so
// it may run inside another process's namespaces. If the directories do not belong
// to the caller, it needs CAP_DAC_OVERRIDE, and CAP_CHOWN for a file of another owner;
// the error names the missing capability. It needs no particular kernel, and works on
// every platform; modes and owners are those of Unix.
//
// Paths accepts an existing path of the right type as it is: it does not check, and
// cannot repair, mode, owner or content.
package hostpath
