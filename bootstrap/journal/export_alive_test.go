// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

// PodOf reports whether a cgroup's path leads through that of a pod.
var PodOf = podOf

// IsPod reports whether an owner is a pod's UID.
var IsPod = isPod
