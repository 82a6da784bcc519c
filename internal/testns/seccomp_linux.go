// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package testns

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Call is a system call, if First is not zero one with that first argument.
type Call struct{ Number, First uint32 }

// NewMountCalls are the mount calls newer than mount(2).
func NewMountCalls() []Call {
	return []Call{
		{Number: unix.SYS_OPEN_TREE}, {Number: unix.SYS_FSOPEN}, {Number: unix.SYS_FSCONFIG},
		{Number: unix.SYS_FSMOUNT}, {Number: unix.SYS_MOVE_MOUNT},
	}
}

// RefusedByDefault are the calls that the default profile of container runtimes
// refuses to a container with CAP_SYS_ADMIN, CAP_SYS_CHROOT and CAP_SYS_PTRACE, among
// those that exist on every architecture (containerd, contrib/seccomp).
func RefusedByDefault() (calls []Call) {
	for _, number := range []uint32{
		unix.SYS_ACCT, unix.SYS_ADD_KEY, unix.SYS_CLOCK_SETTIME, unix.SYS_DELETE_MODULE, unix.SYS_FINIT_MODULE,
		unix.SYS_GET_MEMPOLICY, unix.SYS_INIT_MODULE, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		unix.SYS_IO_URING_SETUP, unix.SYS_KEXEC_LOAD, unix.SYS_KEYCTL, unix.SYS_MBIND, unix.SYS_MIGRATE_PAGES,
		unix.SYS_MOVE_PAGES, unix.SYS_NFSSERVCTL, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_PIVOT_ROOT, unix.SYS_REBOOT,
		unix.SYS_REQUEST_KEY, unix.SYS_SET_MEMPOLICY, unix.SYS_SETTIMEOFDAY, unix.SYS_SWAPOFF, unix.SYS_SWAPON,
		unix.SYS_USERFAULTFD, unix.SYS_VHANGUP,
	} {
		calls = append(calls, Call{Number: number})
	}
	return calls
}

// Refuse makes a seccomp filter fail calls with errno, as a container's profile does. It
// applies to the calling thread, and to programs that the thread starts, so call it on a
// goroutine that ends on its thread.
func Refuse(errno unix.Errno, calls ...Call) error {
	const number, first = 0, 16 // offsets in struct seccomp_data
	var filter []unix.SockFilter
	for _, c := range calls {
		filter = append(filter, load(number), skipUnless(c.Number, 3), load(first), skipUnlessAny(c.First, 1),
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)})
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, failed := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
	if failed != 0 {
		return failed
	}
	return nil
}

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// skipUnless skips n instructions if the loaded word is not value.
func skipUnless(value uint32, n uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: n, K: value}
}

// skipUnlessAny is skipUnless, for which 0 is any value.
func skipUnlessAny(value uint32, n uint8) unix.SockFilter {
	if value == 0 {
		n = 0
	}
	return skipUnless(value, n)
}
