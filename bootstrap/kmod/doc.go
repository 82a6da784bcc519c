// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package kmod makes sure that the kernel has the modules that an agent needs.
//
//	modules := kmod.Modules{List: []string{"xt_socket", "ip_set"}, Load: true}
//	changes, err := modules.Check(ctx)
//
// A module is present if it is built into the kernel, or loaded. Another one can be loaded
// if it is among the running kernel's modules below /lib/modules, or below
// /run/booted-system/kernel-modules/lib/modules on NixOS, where modules.builtin lists
// built-in modules and modules.dep loadable ones (modules.dep(5)). The node's own
// modprobe(8) loads it, since that handles dependencies, compression and the
// administrator's modprobe.d.
//
// Many modules are loaded by the kernel itself when something asks for them, such as
// the first iptables rule that has a match. Without Load, a loadable module that is not
// loaded is advice, not an error. One that can no longer be loaded
// (kernel.modules_disabled) is an error either way.
//
// # Undoing
//
// A loaded module stays: other programs may use it by then, which the kernel does not
// show. There is no Undo: modules stay loaded.
//
// # What it needs
//
// Linux, with the node's sysfs. It acts in the calling thread's mount namespace, and so
// must run in the host's ("mnt"), where the modules and modprobe are. Its only
// goroutines feed modprobe, and end with it. Loading takes CAP_SYS_MODULE in the initial
// user namespace, and a kernel that still loads modules (kernel.modules_disabled is 0).
// On other systems its errors match [errors.ErrUnsupported].
//
// # When not to use it
//
// To have a module loaded at each boot, use modules-load.d(5). For features that are not
// modules, such as BPF or cgroup hooks, try the feature itself.
package kmod
