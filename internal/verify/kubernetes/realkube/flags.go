// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package realkube

import (
	"net"
	"path/filepath"
)

// EtcdFlags are the flags of an etcd with its data in dir, which does not survive a power cut.
func EtcdFlags(dir, clientAddress, peerAddress string) []string {
	client, peer := "http://"+clientAddress, "http://"+peerAddress
	return []string{
		"--name=one", "--data-dir=" + dir, "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=one=" + peer,
	}
}

// APIServerFlags are the flags of a kube-apiserver at the address, an IP and a port, with the
// files of [WriteCredentials] in dir. A user may do what RBAC allows, or the modes of an
// additional --authorization-mode.
func APIServerFlags(dir, address, etcdAddress string) []string {
	host, port, _ := net.SplitHostPort(address) // if it is invalid, the API server reports it
	file := func(name string) string { return filepath.Join(dir, name) }
	return []string{
		"--etcd-servers=http://" + etcdAddress,
		"--bind-address=" + host, "--secure-port=" + port, "--advertise-address=" + host, "--endpoint-reconciler-type=none",
		"--tls-cert-file=" + file("tls.crt"), "--tls-private-key-file=" + file("tls.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + file("sa.key"), "--service-account-signing-key-file=" + file("sa.key"),
		"--token-auth-file=" + file("tokens.csv"), "--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.96.0.0/16", "--profiling=false",
	}
}
