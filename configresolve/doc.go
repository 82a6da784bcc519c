// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package configresolve merges a node agent's configuration from several sources
// into one set of keys, and remembers where each value came from. Package
// configresolve/configdir writes the result to a directory for the agent.
//
// Sources are merged in order: a later one overrides an earlier one, key by key. A
// [Resolver] can restrict which keys the later sources may set. Keys must be valid
// in a Kubernetes ConfigMap; an invalid key is reported and left out or, in strict
// mode, an error. Values are kept byte for byte.
//
// The sources of this package need no cluster: [Static], [Dir], [File] and [Env].
// The sources that read a cluster are in configresolve/kube, so that a program that
// does not need client-go does not link it. [ReadFile] and [DecodeFile] read a file of
// another format, under the same bounds. [Watch] reports when a mounted
// ConfigMap has changed.
//
// The package needs no capability and no root, only permission to read the sources.
// All files are read in the process's own mount namespace, so resolve before
// entering another one. The package reads no environment variables, leaves no
// goroutine behind and prints nothing; the caller can log the findings of
// [Config.Explain].
//
// Errors name the source and the object. If a source does not exist, the error
// matches [ErrMissing]; wrap the source with [Optional] to tolerate that.
//
// Do not use it for secrets: JSON and [Config.Data] contain every value.
package configresolve
