// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package kmod makes sure that the kernel has the modules that an agent needs.
//
//	modules := kmod.Modules{List: []string{"xt_socket", "ip_set"}, Load: true}
//	changes, err := modules.Check(ctx)
//
// A module is there if it is built into the kernel, or loaded. One that is neither can
// be loaded if the modules of the running kernel have it: those below /lib/modules, or
// below /run/booted-system/kernel-modules/lib/modules on NixOS, where modules.builtin
// names what is built in and modules.dep what can be loaded (modules.dep(5)). It is
// loaded by the node's own modprobe(8), which knows what it depends on, how it is
// compressed, and what an administrator has written into modprobe.d.
//
// Many modules are loaded by the kernel itself when something asks for them, such as
// the first iptables rule that has a match. Without Load, one that is there and not
// loaded is advice, and no error. One that nobody can load any more
// (kernel.modules_disabled) is an error either way.
//
// # Undoing
//
// A module that was loaded stays: others may use it by then, and the kernel could not
// tell. There is no Revert, and a plan has nothing to revert.
//
// # What it needs
//
// Linux, with the node's sysfs. It acts in the calling thread's mount namespace, and so
// belongs into the host's (hostns.Mount), where the modules and modprobe are; it starts
// no goroutine but those that feed modprobe, which end with it. To load takes
// CAP_SYS_MODULE in the initial user namespace, and a kernel that still loads modules
// (kernel.modules_disabled is 0). On other systems its errors match
// [errors.ErrUnsupported].
//
// # When not to use it
//
// To have a module loaded at each boot: that is modules-load.d(5). Nor for features that
// are no module of their own, such as BPF or cgroup hooks: try those.
package kmod
