// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package cluster runs a real Kubernetes of one or several nodes on a machine that
// stays as it is: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and
// kubelets (one binary, package realkube), and Debian's containerd, runc and CNI
// plugins, which are downloaded and unpacked but not installed; another containerd
// is built from its module (package realcri). A node may lose its power; its disk can
// be booted again, also as that of another node.
//
// All of it is on throw-away nodes (package testns), with their files in
// memory, and so goes with them: at [Cluster.Close], and when the process that
// started it dies. Only empty cgroups stay then, which the next one removes.
//
// There is no registry: images are made from files (package image) and imported.
// There is no pod network until a test installs one, and no kube-proxy: the
// address of the service "kubernetes" is rewritten by a rule of iptables.
//
// It needs Linux, root, and a machine with the controllers of cgroups in version
// 1 (a hybrid or legacy layout), or in version 2 where cgroups below the root have
// them (as with systemd; shown with containerd and a kubelet that runs a pod, without
// the rest of Kubernetes), apt-get the first time, and the programs ip and iptables.
package cluster
