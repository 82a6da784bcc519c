// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package sysctl reads and sets kernel values, and keeps them over a reboot in
// a sysctl.d file.
//
// [Kernel] gets, compares and sets values by [Key], in either spelling of
// sysctl.d(5), with globs. It reads before it writes and writes only what
// differs, so a value that is right is no error where /proc/sys is read-only,
// and it reads back: a write that the kernel or a security module swallows is
// an error. [Settings] and [DropIn] are actions over it, which note previous
// values in a journal and can put them back; the first keeps no file, the second
// writes one, of values that the kernel has taken, and may have systemd apply it
// ([Systemd]). [Handler] undoes both. [Effective] says what systemd makes of all files, [Forwarding] and
// [Datapath] what agents set.
//
// Not every value stands alone. The kernel rewrites every link's forwarding
// when the global one changes; that is noted, and put back. Turning IPv6
// forwarding on would cost a link the default route that it has from router
// advertisements; the link gets accept_ra = 2 first, or forwarding stays off
// with an error. The reverse path filter is the larger of two values; Advise
// says where one of them makes the other pointless.
//
// # Where it acts
//
// Keys below net are those of the network namespace that the calling thread is
// in; all others are the machine's. Files, sockets and /proc are those of its
// mount namespace. No goroutine is started, except by [Systemd] for the time
// of one call. Nothing here takes a lock: whoever changes a node does.
//
// # What it needs
//
// Reading needs nothing. Keys below net need CAP_NET_ADMIN in the user
// namespace that owns the network namespace, others root and a few of them
// CAP_SYS_ADMIN; a container needs /proc/sys writable (privileged, or procMount:
// Unmasked). A drop-in needs write permission in its directory, a reload root
// and systemd's socket or the system bus. Names never leave /proc/sys, nor do
// links below it lead out ([os.Root]).
//
// # Errors
//
// Independent failures are joined, each with its key and value. They match
// what the system said: [fs.ErrNotExist] for a key that this kernel does not
// have, syscall.EINVAL for a value that it does not take, [fs.ErrPermission]
// and syscall.EROFS with the remedy in the text. On other systems than Linux
// they match [errors.ErrUnsupported], unless Kernel.Files stands in.
//
// # When not to use it
//
// For a value that a process needs for itself use its own interface
// (setsockopt(2), prctl(2)): these values are everybody's. For a node's whole
// sysctl configuration leave it to the distribution's files; this package
// changes the few keys of one agent, and takes them back.
package sysctl
