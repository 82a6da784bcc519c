// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package hostns runs code in the namespaces of another process, such as the
// host's pid 1, from inside a container and without a helper binary.
//
// # How
//
// [Do] starts one goroutine, locks it to an operating system thread, enters
// the namespaces with setns(2), calls a function there, and waits for it. The
// thread is never unlocked, so the Go runtime destroys it when the function
// has returned: no other goroutine ever runs in a foreign namespace. The main
// thread cannot be destroyed and is never used.
//
// # What it needs
//
// Linux. CAP_SYS_ADMIN for every namespace, CAP_SYS_CHROOT also for [Mount]
// (setns(2)), and CAP_SYS_PTRACE to open the namespace files of a process that
// has capabilities which this one has not, such as pid 1 (namespaces(7)). A
// container needs the host's /proc at some path (a hostPath volume, or
// hostPID). On other systems every call returns an error matching
// [errors.ErrUnsupported].
//
// # What the function sees
//
// It runs in the named namespaces of the target and, for all other kinds, in
// those of the caller's thread. With [Mount] its root and working directory are
// the root of the target's mount namespace, also when the target is the
// caller's own; every path is resolved there. Open what lies on the caller's
// side before: [os.OpenRoot] before Do keeps referring to the caller's
// directory inside, whereas [os.DirFS] resolves its path anew at each call.
//
// Programs that the function starts inherit the thread's namespaces. Goroutines
// that it starts do not: the runtime runs them on ordinary threads, in the
// process's own namespaces. So the function starts none, and calls nothing that
// starts some, such as name look-ups and dialing. It must not call
// [runtime.UnlockOSThread].
//
// # Whose it is
//
// What is done without entering, in a container, stays in the container, unless
// its place is a volume of the host's. [CheckProc], [CheckFile] and [CheckMount]
// tell, before something is done to the wrong one.
//
// # When not to use it
//
// A user namespace cannot be entered (the kernel refuses it to a program with
// several threads), nor can a pid or time namespace, which would hold for
// children only. For a long-lived server in another namespace start a program.
package hostns

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Namespace is a set of kinds of namespaces, joined by the or-operator.
type Namespace uint8

// The kinds that can be entered.
const (
	Mount  Namespace = 1 << iota // mount points and the root directory
	Cgroup                       // the root that cgroup paths and new cgroup mounts have
	Net                          // links, routes, sockets, net sysctls
	UTS                          // host name
	IPC                          // System V IPC, message queues, their sysctls
)

// kinds lists what can be entered, in the order of entry. The mount namespace
// comes last: before it, the caller's /proc is still in sight.
var kinds = [...]struct {
	ns         Namespace
	name, file string
}{
	{Cgroup, "cgroup", "cgroup"},
	{Net, "net", "net"},
	{UTS, "uts", "uts"},
	{IPC, "ipc", "ipc"},
	{Mount, "mount", "mnt"},
}

const all = Mount | Cgroup | Net | UTS | IPC

// String returns the names of the kinds in ns, as in "cgroup|mount".
func (ns Namespace) String() string {
	var names []string
	for _, k := range kinds {
		if ns&k.ns != 0 {
			names = append(names, k.name)
		}
	}
	if rest := ns &^ all; rest != 0 {
		names = append(names, fmt.Sprintf("%#x", uint8(rest)))
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, "|")
}

// Error says which namespace could not be entered, and why. Nothing was done
// in any namespace then: the function was not called.
type Error struct {
	// Op is what failed: "open", "unshare" or "setns".
	Op string
	// Namespace is the kind, zero if the fault is the process's directory.
	Namespace Namespace
	// Path is the namespace file or the process's directory.
	Path string
	// Missing names the capabilities which the operation needs and which this
	// thread has not, as in "CAP_SYS_ADMIN and CAP_SYS_CHROOT"; empty if the
	// failure has another cause.
	Missing string
	// Err is the cause; a system call's error matches its errno.
	Err error
}

// Error returns one line that names operation, namespace, path, cause and the
// missing capabilities.
func (e *Error) Error() string {
	object := e.Path
	if e.Namespace != 0 {
		object = e.Namespace.String() + " namespace " + e.Path
	}
	text := fmt.Sprintf("enter %s: %s: %v", object, e.Op, e.Err)
	if e.Missing != "" {
		text += ": missing " + e.Missing
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Do calls f in the namespaces ns of the process whose directory in a proc file
// system is procDir, such as /hostproc/1, and returns what f returns. The
// package comment says what f sees and may do.
//
// Do always waits for f. Cancellation of ctx is for f to see; it does not make
// Do return, since a system call under way cannot be abandoned. With a ctx that
// is cancelled beforehand nothing is entered.
//
// All namespaces are opened before the first is entered. A namespace that is
// already the thread's own is not entered again, except the mount namespace,
// where entry also sets the root and the working directory. Entering fails with
// an [*Error]. A panic in f is returned as an error that holds its stack, and so
// is its end by [runtime.Goexit], as in testing.T.FailNow.
func Do(ctx context.Context, procDir string, ns Namespace, f func(context.Context) error) error {
	switch {
	case procDir == "":
		return errors.New("enter namespaces: no proc directory of a process given, such as /hostproc/1")
	case ns == 0:
		return fmt.Errorf("enter namespaces of %s: none named", procDir)
	case ns&^all != 0:
		return fmt.Errorf("enter namespaces of %s: unknown kind %v", procDir, ns&^all)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("enter %v namespaces of %s: %w", ns, procDir, err)
	}
	return do(ctx, procDir, ns, f)
}
