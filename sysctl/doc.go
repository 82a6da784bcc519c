// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package sysctl reads and sets kernel values, and makes them survive a reboot by a
// sysctl.d file.
//
// [Kernel] gets, compares and sets values by [Key], in either spelling of
// sysctl.d(5), with globs. It reads before it writes and writes only what differs,
// so a read-only /proc/sys is no error as long as the values are right. It also
// reads back: if the kernel or a security module ignores a write, that is an error.
//
// [Settings] and [DropIn] are actions that use a Kernel, record previous values in
// a journal, and can put them back. Settings writes no file. DropIn writes a file
// of the values that the kernel has accepted, and can have systemd apply it
// ([Systemd]). [Handler] undoes both. [Effective] says which values systemd derives
// from all files; [Forwarding], [Datapath] and [Cilium] hold what agents set.
//
// Not every value stands alone. The kernel rewrites every link's forwarding when
// the global one changes; the previous values are recorded, and put back. Turning
// IPv6 forwarding on would delete the default route that a link has from router
// advertisements: the link gets accept_ra = 2 first, or forwarding is not turned on
// and an error says so. The reverse path filter in effect is the larger of two
// values; Advise says where one of them makes the other pointless.
//
// # Where it acts
//
// Keys below net belong to the network namespace of the calling thread, all others
// to the machine. Files, sockets and /proc are those of the thread's mount
// namespace. In a container, a plan refuses to set the keys below net unless it enters
// the host, or the network namespace is certainly the host's. No goroutine is started,
// except by [Systemd] for the duration of a call. Nothing here takes a lock: whoever
// changes a node must hold one.
//
// # What it needs
//
// Reading needs no privilege. To write keys below net takes CAP_NET_ADMIN in the
// user namespace that owns the network namespace; to write other keys takes root
// and, for a few of them, CAP_SYS_ADMIN. A container needs a writable /proc/sys
// (privileged, or procMount: Unmasked). A drop-in needs write permission in its
// directory; a reload needs root, and systemd's socket or the system bus. No key,
// and no symbolic link below /proc/sys, leads out of it ([os.Root]).
//
// # Errors
//
// Independent failures are joined, each an [*Error] with its key and value.
// [ErrSwallowed] means that a write did not take effect. Other errors match what
// the system returned: [fs.ErrNotExist] for a key that this kernel does not have,
// or a glob that none could match, syscall.EINVAL for a value that it does not accept,
// [fs.ErrPermission] and syscall.EROFS with the remedy in the text. On systems other than
// Linux they match [errors.ErrUnsupported], unless Kernel.Files is set.
//
// # When not to use it
//
// For something that only the process itself needs, use an interface of its own
// (setsockopt(2), prctl(2)): kernel values affect everybody. Leave a node's whole
// sysctl configuration to the distribution's files: this package changes the few
// keys that one agent needs, and puts them back.
package sysctl
