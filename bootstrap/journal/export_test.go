// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

// PodOf reports whether a cgroup path leads through a pod's cgroup.
var PodOf = podOf

// IsPod reports whether an owner is a pod's UID.
var IsPod = isPod

// Bound lowers the limits until restore is called.
func Bound(entries, record int, live int64, blobs int, content int64) (restore func()) {
	was := bound
	bound = bounds{entries, record, live, blobs, content}
	return func() { bound = was }
}
