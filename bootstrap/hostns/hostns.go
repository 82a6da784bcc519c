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
// Linux. CAP_SYS_ADMIN for every namespace, for [Mount] also CAP_SYS_CHROOT
// (setns(2)), and CAP_SYS_PTRACE to open the namespace files of a process that has
// capabilities which this one lacks, such as pid 1 (namespaces(7)). A container
// needs the host's /proc at some path (a hostPath volume, or hostPID). On other
// systems every call returns an error matching [errors.ErrUnsupported].
//
// # What the function sees
//
// It runs in the requested namespaces of the target process and, for all other
// kinds, in those of the caller's thread. With [Mount], its root and working
// directory are the root of the target's mount namespace, even if that is the
// caller's own; every path is resolved there. Open files on the caller's side
// before calling Do: an [os.Root] opened before keeps referring to the caller's
// directory, whereas [os.DirFS] resolves its path anew at each call.
//
// Programs that the function starts inherit the thread's namespaces. Goroutines
// that it starts do not: the runtime runs them on ordinary threads, in the
// process's own namespaces. So the function must not start goroutines, nor call
// anything that starts them, such as name look-ups and dialing. It must not call
// [runtime.UnlockOSThread].
//
// # A plan's host
//
// A [Host] is the node that a bootstrap.Plan changes, and how this process reaches it:
//
//	plan := bootstrap.Plan{Host: hostns.Host{Proc: "/hostproc"}, ...}
//
// The plan opens its ledger on the host, and takes the node's lock there. It calls what its
// steps want in all the host's namespaces, and each action in those that the action names
// (bootstrap.Hosted).
// The zero Host is for a process that runs on the host itself. A program without a plan
// uses [Host.Enter] and [Host.Lock]. There is one lock for the whole node; package
// bootstrap documents which operations exclude each other.
//
// # Container or host
//
// A change that is made in a container without entering the host's namespaces stays
// in the container, unless it is made on a volume of the host's. [CheckProc],
// [Host.CheckPlaces] detects that before anything is changed on the wrong side.
// A plan that enters no host, and whose Host does not set Here, calls them through
// [Host.CheckPlaces] for the places of the objects that its steps want (ledger.Kind.Place).
//
// # When not to use it
//
// A user namespace cannot be entered (the kernel refuses it to a program with
// several threads), nor can a pid or time namespace, which would apply to child
// processes only. For a long-lived server in another namespace, start a program
// there.
package hostns

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// kinds lists what can be entered, in the order of entry. The mount namespace comes
// last: once it is entered, the caller's /proc is out of sight.
var kinds = [...]kind{
	{Cgroup, "cgroup", "cgroup"},
	{Net, "net", "net"},
	{UTS, "uts", "uts"},
	{IPC, "ipc", "ipc"},
	{Mount, "mount", "mnt"},
}

type kind struct {
	ns         Namespace
	name, file string
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

// byName returns the kinds with the given file names.
func byName(names []string) (ns Namespace, err error) {
	for _, name := range names {
		i := slices.IndexFunc(kinds[:], func(k kind) bool { return k.file == name })
		if i < 0 {
			return 0, fmt.Errorf("enter namespaces: there is no kind %q, or it cannot be entered", name)
		}
		ns |= kinds[i].ns
	}
	return ns, nil
}

// Do calls f in the namespaces ns of the process whose directory in a proc file
// system is procDir, such as /hostproc/1, and returns what f returns. The package comment
// describes what f sees and what it may do.
//
// Do always waits for f. Only f can react when ctx is cancelled: Do does not return
// early, since a system call under way cannot be abandoned. If ctx is cancelled
// before the call, nothing is entered.
//
// All namespaces are opened before the first is entered. A namespace that the
// thread is already in is not entered again, except the mount namespace, since
// entering it also sets the root and the working directory. If entering fails, f is
// not called. If f panics, or ends by [runtime.Goexit] as
// testing.T.FailNow does, Do returns an error that holds the stack.
func Do(ctx context.Context, procDir string, ns Namespace, f func(context.Context) error) error {
	switch {
	case procDir == "":
		return errors.New("enter namespaces: no proc directory of a process given, such as /hostproc/1")
	case ns == 0:
		return fmt.Errorf("enter namespaces of %s: none named", procDir)
	case f == nil:
		return fmt.Errorf("enter namespaces of %s: no function given to call there", procDir)
	case ns&^all != 0:
		return fmt.Errorf("enter namespaces of %s: unknown kind %v", procDir, ns&^all)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("enter %v namespaces of %s: %w", ns, procDir, err)
	}
	return do(ctx, procDir, ns, f)
}
