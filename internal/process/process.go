// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package process reads about the node's processes in /proc.
//
// Unless [Process.Proc] is set, it is the /proc of the calling thread's mount namespace: on a thread that has
// entered the host's (package hostns), all processes of the host are in it, including
// those of its containers. Except for [Process.Open], reading never waits for a file
// system of another user.
//
// Reading more than a process's name and users takes CAP_SYS_PTRACE if the process is
// another user's or has other capabilities. Errors of a process that has ended match
// [fs.ErrNotExist]. On systems other than Linux errors match [errors.ErrUnsupported].
package process

import "slices"

// Process is a process of the node. Its number may belong to another process by now, like
// any pid.
type Process struct {
	// PID is its number in the pid namespace of /proc.
	PID int

	// Proc is where that is mounted. If empty, it is /proc.
	Proc string
}

// Status is the world-readable part of a process's state.
type Status struct {
	Name string // at most 15 bytes, chosen by the process
	Dead bool   // ended, but not yet waited for by its parent

	// UIDs are its real, effective, saved and file system user.
	UIDs [4]int

	// Innermost is its number in its own pid namespace.
	Innermost int

	// Effective and Bounding are sets of capabilities, by their numbers (capabilities(7)).
	Effective, Bounding uint64
}

// RunsAs reports whether all user ids of the process are among uids. A set-user-id
// program that a user has started still has the user's real id.
func (s Status) RunsAs(uids ...int) bool {
	return !slices.ContainsFunc(s.UIDs[:], func(uid int) bool { return !slices.Contains(uids, uid) })
}

// Called reports whether the process's name matches that of the file that it executes:
// the kernel takes the first 15 bytes of that name.
func (s Status) Called(program string) bool {
	return s.Name == program[:min(len(program), 15)]
}
