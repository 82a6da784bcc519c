// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package cri asks a node's container runtime where it looks for CNI plugins and
// configurations, and what it has loaded.
//
//	looks, err := cri.Endpoint{HostProc: "/hostproc"}.CNI(ctx)
//	fmt.Println(looks.ConfDir, looks.PluginDirs)
//
// No runtime reads a configuration that is installed elsewhere, and the usual places are
// not universal: k3s, MicroK8s, minikube and Red Hat's CoreOS use others, and Debian's
// own containerd reads plugins from /usr/lib/cni.
//
// [Endpoint.SandboxIDs] lists the pod sandboxes that the runtime knows: resources of any
// other sandbox, such as its address, are leaked. [Endpoint.CallsStatus] reports whether the
// runtime asks CNI plugins for their STATUS.
//
// [Loaded] is a step of a plan that waits until the runtime has loaded the configuration
// that an earlier step has installed.
//
// # How
//
// An [Endpoint] without a path is the socket that the kubelet names, or else one at a place
// of a distribution. Each method makes one call of the Container Runtime Interface,
// RuntimeService/Status with verbose set, ListPodSandbox or Version, in version v1. It takes
// about a millisecond. containerd reports its directories and the
// networks that it has loaded; CRI-O reports its directories at /config on the same
// socket; cri-dockerd reports neither. Configuration files of runtimes are not read: they
// import others, and may have changed since the runtime started.
//
// # Which processes are trusted
//
// The answers of a runtime decide where files are written as root, and which addresses
// are released. So no process is trusted for its name. A socket is believed if the caller
// or the kubelet names it, or it is at a place of a distribution, and only root may change
// any part of its path, and root listens (SO_PEERCRED). This is checked for each
// connection; else the error has the code cri.unproven. Sockets anywhere else are not looked
// at.
//
// A kubelet is a process with that name of the host's root: all its user ids are 0, it has
// every capability that pid 1 passes on, it is in no pod's cgroup and in pid 1's pid and
// user namespaces, and its program has no set-id bit and no capabilities and lies where
// only root can have put it.
//
// # What it needs
//
// Linux, the host's /proc, and a runtime with version v1 of the CRI, which the kubelet
// needs since 1.26: containerd 1.6 or newer, CRI-O, cri-dockerd, or iSulad where its
// enable-cri-v1 is set. Version v1alpha2, the only one of containerd 1.4 and 1.5, is not
// supported.
//
// The socket is root's and is reached through /proc/1/root. That, and reading about a
// kubelet, takes CAP_SYS_PTRACE if pid 1 has capabilities that this process lacks
// (proc_pid_root(5), ptrace(2)). Under SELinux, the process needs a type that may connect
// to the runtime, such as spc_t. On other systems every call returns an error matching
// [errors.ErrUnsupported].
//
// Do not make the calls inside hostns.Do: connecting starts goroutines, which would run
// in other namespaces. They leave none behind, and no connection.
//
// # What can go wrong
//
// The error has the code cri.no-runtime if nothing listens, cri.several if several runtimes
// do and the kubelet does not decide, and cri.unproven if another user than root may listen,
// or no runtime does where the caller says so. An error that a runtime without the call
// answers matches [errors.ErrUnsupported]. An answer of more than 4 MiB,
// gRPC's own limit (a list of sandboxes: 16 MiB, the kubelet's), is an error; a call waits
// until ctx ends for a runtime that does not answer.
//
// # When not to use it
//
// To run pods or containers: use the client of k8s.io/cri-api. To prove that pods get a
// network: a loaded configuration may still fail.
package cri
