// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package process reads what /proc says of the node's processes.
//
// It is the /proc of the calling thread's mount namespace: on a thread that has
// entered the host's (package hostns), all processes of the host are in it, those of
// its containers among them. What is read waits for no file system of others, but for
// [Process.Open].
//
// To see more than what a process is called and runs as takes CAP_SYS_PTRACE, where
// it is another user's or has other capabilities. Errors of a process that has ended
// match [fs.ErrNotExist]. On systems other than Linux errors match
// [errors.ErrUnsupported].
package process

import "slices"

// Process is a process of the node. Its number may be another's by now, as any pid.
type Process struct {
	// PID is its number in the pid namespace of /proc.
	PID int
}

// Status is what anybody may know of a process.
type Status struct {
	Name string // at most 15 bytes, chosen by the process
	Dead bool   // only its parent has not been told yet

	// UIDs are its real, effective, saved and file system user.
	UIDs [4]int

	// Innermost is its number in its own pid namespace.
	Innermost int
}

// RunsAs reports whether the process is in no respect another user than one of uids.
// A set-user-id program that a user has started still has the user's real id.
func (s Status) RunsAs(uids ...int) bool {
	return !slices.ContainsFunc(s.UIDs[:], func(uid int) bool { return !slices.Contains(uids, uid) })
}

// Called reports whether the process may be called as the file that it executes: the
// kernel takes the first 15 bytes of that name.
func (s Status) Called(program string) bool {
	return s.Name == program[:min(len(program), 15)]
}
