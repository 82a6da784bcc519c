// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package realkube runs a real kube-apiserver over a real etcd on loopback, for
// tests that a fake API server would prove nothing to.
//
// Both are one static binary, which is also the other parts of Kubernetes that
// internal/verify/kubernetes/e2e runs, built from their Go modules: 8 CPU-minutes the first time,
// nothing afterwards (see [Binary]). A server is ready in 2 to 3
// seconds and takes 300 MB. There is no kubelet, no scheduler and no controller
// manager: objects do what their API does and no more.
//
// A [Server] can be stopped, killed and started again on the same data and the
// same address; it says which requests it saw and what they cost. Its processes
// die with the process that started them. It needs no root and no network but,
// once, the module proxy.
package realkube
