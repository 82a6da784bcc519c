// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package cri asks a node's container runtime where it looks for CNI plugins and
// configurations, and what it has loaded.
//
//	looks, err := cri.Endpoint{HostProc: "/hostproc"}.CNI(ctx)
//	fmt.Println(looks.ConfDir, looks.PluginDirs)
//
// A configuration that is installed elsewhere is read by nobody, and the usual
// places are not everybody's: k3s, MicroK8s, minikube and Red Hat's CoreOS have
// others, and Debian's own containerd reads plugins from /usr/lib/cni.
//
// [Endpoint.Status] tells that too, and what has been loaded. [Endpoint.SandboxIDs]
// lists the pods' sandboxes that it knows: what belongs to any other, such as its
// address, was left behind. [Endpoint.Runtime] tells which runtime it is, and
// [Runtime.CallsStatus] whether that one asks CNI plugins for their STATUS.
//
// [Loaded] is a step of a plan that waits until the runtime has loaded what an
// earlier one has installed.
//
// # How
//
// [Find] looks for the socket among those that listen on the host, and takes the
// kubelet's word where it says which is its runtime. [Endpoint.Status] makes one
// call of the Container Runtime Interface, RuntimeService/Status with verbose set
// ([Endpoint.SandboxIDs]: ListPodSandbox), in version v1. It takes about a millisecond.
// containerd tells its directories and the networks that it has loaded; CRI-O tells its directories at /config on the same
// socket; cri-dockerd tells neither. No configuration file of a runtime is read:
// these import others, and may have changed since the runtime started.
//
// # Who is believed
//
// What a runtime says decides where files are written as root, and which addresses are
// released. So neither a kubelet nor a runtime is believed by its name: each is a
// process of the host's root. That is one whose four user ids are 0, that has every
// capability that pid 1 passes on, is in no pod by its cgroup and in the pid and user
// namespaces of pid 1, and whose program has no set-id bit and no capabilities and lies
// where only root can have put it, or lay, if it was replaced meanwhile. Its mount
// namespace may be its own. Of a socket, that is the process which has it open, and root
// has called listen(2) for it; which socket is bound to a file is what the kernel says
// (unix_diag), since a name in /proc/1/net/unix may look like lines of others. Its
// place too is root's alone. This holds for each connection, also for a path that is
// given. Where it cannot be shown, the error matches [ErrUnproven].
//
// # What it needs
//
// Linux with unix_diag (a module in most kernels, loaded on demand), the host's /proc,
// and a runtime with version v1 of the CRI, which the kubelet needs since 1.26:
// containerd 1.6 or newer, CRI-O, cri-dockerd, or iSulad where its enable-cri-v1 is set.
// Version v1alpha2, all that containerd 1.4 and 1.5 have, is not asked for.
//
// Outside of the host's network namespace it takes CAP_SYS_ADMIN to ask who listens
// there. The socket is root's, and it is reached through
// /proc/1/root, which takes CAP_SYS_PTRACE where pid 1 has capabilities that this
// process lacks (proc_pid_root(5), ptrace(2)), and so does what other processes have
// open; and under SELinux a type that may connect to the runtime, such as spc_t. On other systems every call returns an
// error matching [errors.ErrUnsupported].
//
// The calls must not be made inside hostns.Do: to connect starts goroutines, which
// would run in other namespaces. They leave none behind, and no connection.
//
// # What can go wrong
//
// [ErrNoRuntime] is matched where nothing listens, [ErrSeveral] where several do and
// the kubelet does not decide, and [ErrUnproven] where a stranger may listen. What the runtime itself answers is an
// [*RPCError]. An answer of more than 4 MiB, gRPC's own limit (a list of sandboxes:
// 16 MiB, the kubelet's), is an error; a runtime that does not answer is waited for
// until ctx ends.
//
// # When not to use it
//
// To run pods or containers: use the client of k8s.io/cri-api. Nor to prove that
// pods get a network: a configuration that is loaded may still fail.
package cri
