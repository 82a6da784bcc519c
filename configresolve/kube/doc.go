// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package kube contains the configuration sources that are in a Kubernetes cluster:
// a ConfigMap, node configs (objects of a custom resource that select nodes by
// label), and the labels and annotations of a Node.
//
// It uses client-go's dynamic and metadata clients only. A Node is read as
// metadata, without its status, and once for all sources of a resolution. With
// these three sources, a node makes three requests, plus one if the API server has
// node configs only in their older version, and one for each further 250 of them.
// The first source is requested alone, which makes the connection and shows that
// the server is healthy; the others follow together, over the same HTTP/2
// connection.
//
// Every read requests the newest state: no resourceVersion is given, so the API
// server answers from etcd, or from a cache that it has checked against etcd. A
// change that the API server has acknowledged is never missed.
//
// [Watch] keeps a configuration up to date: it reports which keys changed and where
// their values come from, and never requests unchanged objects again.
//
// [Connection] makes a client that keeps trying, until the context ends, while an
// API server is slow, restarting or overloaded. An answer of 401 or 403 is final
// once the API server has reported at /readyz that it is ready (a starting server
// denies all requests for a moment); the error names the permission to grant. A
// failed request is tried again at once, and then at random times within a minute,
// so that thousands of nodes do not return in one wave ([Connection.Spread]). If a
// policy of the agent's own host firewall blocks the API server, packets with the
// agent's mark still pass: they are tried if others get no answer
// ([Connection.Mark]). The client needs no capability except CAP_NET_ADMIN for that
// mark; its ServiceAccount needs get on the ConfigMap, list on the custom resource
// and get on the Node.
//
// Do not use it if a ConfigMap can be mounted instead: with configresolve.Dir, a
// node needs no API server to boot.
package kube
