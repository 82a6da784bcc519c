// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package configresolve merges a node agent's configuration from several
// sources into one set of keys, remembers where each value came from, and
// writes the result the way the kubelet mounts a ConfigMap.
//
// Sources are merged in order: a later one overrides an earlier one, key by
// key. A [Resolver] can restrict which keys the later sources may set. Keys
// follow the rule of a Kubernetes ConfigMap; what does not is reported and left
// out, or refused in strict mode. Values are kept byte for byte.
//
// The sources of this package need no cluster: [Static], [Dir], [File] and
// [Env]. Those that read one are in configresolve/kube, so that a program that
// does not need client-go does not link it.
//
// Nothing here needs a capability or root, only the right to read the sources
// and to write the directory; a Revert that gives an earlier configuration back
// to another owner needs CHOWN. Everything acts on the calling process's own view
// of the file system, so resolve before entering another mount namespace. The
// package reads no environment, keeps no goroutine and prints nothing; a caller
// logs [Config.Findings].
//
// The directory that is written may be somebody else's, such as an emptyDir: it is
// opened once, links in it are not followed, what is in it is not read beyond
// what it is compared with, and an earlier configuration of more than 8 MiB is not
// replaced where it would have to be kept for a Revert.
//
// Errors name the source and the object. A source that does not exist matches
// [ErrMissing] and is tolerated through [Optional]. A configuration without keys
// does not replace one that has some: that is [ErrEmpty].
//
// Do not use it for secrets: files are written world-readable, and Explain
// prints every value.
package configresolve
