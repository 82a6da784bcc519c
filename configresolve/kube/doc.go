// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package kube has the sources of a configuration that live in a Kubernetes
// cluster: a ConfigMap, node configs (objects of a custom resource that select
// nodes by label), and the labels and annotations of a Node.
//
// It uses client-go's dynamic and metadata clients only. A Node is read as
// metadata, without its status, and once for all sources of a resolution. With
// three sources a node makes three requests: one more where node configs are
// served in their older version only, one more for each further 500 of them. The
// first source is asked for alone, and so makes the connection and shows that
// the server is well; the others follow together, over the same HTTP/2
// connection.
//
// Every read asks for the newest state (no resourceVersion is given, so the API
// server answers from etcd or from a cache that it has checked against etcd):
// a change that the API server has acknowledged is never missed.
//
// [Watch] keeps a configuration up to date: it says which keys changed and from
// where, and asks the API server for nothing that has not changed.
//
// [Connection] makes a client that survives an API server that is slow,
// restarting or overloaded, for as long as the context lets it. An answer of
// 401 or 403 is final once the API server has said by /readyz that it is ready
// (one that starts denies everybody for a moment), and the error says what to
// grant. What fails is tried again at once and then within a minute, at random,
// so that thousands of nodes do not come back in one wave ([Connection.Spread]).
// The client needs no capability; its ServiceAccount needs get on the ConfigMap,
// list on the custom resource and get on the Node.
//
// Do not use it where a ConfigMap can be mounted instead: configresolve.Dir
// needs no API server to boot.
package kube
