// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package realkube runs a real kube-apiserver over a real etcd on loopback, for tests in which
// a fake API server would prove nothing.
//
// Both are one static binary, which also contains the other parts of Kubernetes that
// internal/verify/kubernetes/e2e runs. It is built from their Go modules, in 8 CPU-minutes the
// first time (see [Binary]). A server is ready in 2 to 3 seconds and takes 300 MB. There is no
// kubelet, no scheduler and no controller manager: objects do only what their API does.
//
// A [Server] can be stopped, killed and restarted on the same data and the same address; it
// reports the requests it received and their cost. Its processes die with the process that
// started them. It needs no root, and no network except for the module proxy the first time.
package realkube
