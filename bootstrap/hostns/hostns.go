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
// Linux. CAP_SYS_ADMIN for every namespace, for "mnt" also CAP_SYS_CHROOT
// (setns(2)), and CAP_SYS_PTRACE to open the namespace files of a process that has
// capabilities which this one lacks, such as pid 1 (namespaces(7)). A container
// needs the host's /proc at some path (a hostPath volume, or hostPID). On other
// systems every call returns an error matching [errors.ErrUnsupported].
//
// # What the function sees
//
// It runs in the requested namespaces of the target process and, for all other
// kinds, in those of the caller's thread. With "mnt", its root and working
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
// uses [Host.Do] and [Host.Lock]. There is one lock for the whole node; package
// bootstrap documents which operations exclude each other.
//
// # Container or host
//
// A change that is made in a container without entering the host's namespaces stays
// in the container, unless it is made on a volume of the host's.
// [Host.CheckPlaces] detects that before anything is changed on the wrong side.
// A plan that enters no host, and whose Host does not set Here, calls it for the places of the objects that its steps want (ledger.Kind.Place).
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

// kinds lists what can be entered, by the names of the files in /proc/PID/ns, in the order of
// entry. The mount namespace comes last: once it is entered, the caller's /proc is out of sight.
var kinds = []string{"cgroup", "net", "uts", "ipc", "mnt"}

// check returns an error if one of the namespaces cannot be entered.
func check(namespaces []string) error {
	for _, name := range namespaces {
		if !slices.Contains(kinds, name) {
			return fmt.Errorf("enter namespaces: there is no kind %q, or it cannot be entered", name)
		}
	}
	return nil
}

// Do calls f in namespaces of the process whose directory in a proc file system is procDir,
// such as /hostproc/1, and returns what f returns. The namespaces are given by the names of
// their files in /proc/PID/ns: "mnt", "cgroup", "net", "uts", "ipc". The package comment
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
func Do(ctx context.Context, procDir string, namespaces []string, f func(context.Context) error) error {
	switch {
	case procDir == "":
		return errors.New("enter namespaces: no proc directory of a process given, such as /hostproc/1")
	case len(namespaces) == 0:
		return fmt.Errorf("enter namespaces of %s: none named", procDir)
	case f == nil:
		return fmt.Errorf("enter namespaces of %s: no function given to call there", procDir)
	}
	if err := check(namespaces); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("enter %s namespaces of %s: %w", strings.Join(namespaces, ", "), procDir, err)
	}
	return do(ctx, procDir, namespaces, f)
}
