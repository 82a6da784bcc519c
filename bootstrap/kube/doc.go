// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package kube is what an agent does with its cluster around a plan: it waits for the
// API server and for custom resources, registers its own, marks its node as ready, tells
// what its runs have come to, and, when it is to end, a restart from its removal.
//
//	plan := bootstrap.Plan{Steps: []bootstrap.Step{
//		{Name: "api-server", Action: kube.APIServer(config)},
//		{Name: "crds", Action: kube.Definitions{Client: client, List: crds, VersionLabel: "agent.example.org/schema"}},
//		{Name: "cni", ...},
//		{Name: "node", After: []string{"cni"}, Action: kube.Node{Client: client, Name: name, Taint: "agent.example.org/not-ready"}},
//	}}
//	...
//	decision := kube.DaemonSet{Client: client, Namespace: namespace, Name: "agent", Node: name}.Decide(ctx)
//
// It uses client-go's dynamic client, and its metadata client in a [Reporter]. [Node] and [Definitions] are steps of a plan,
// and the gates are those of package bootstrap/gate. What is done in the cluster is not
// undone with the node, but for [Reporter.Withdraw].
//
// # What it needs
//
// No capability. Of the cluster, get and patch on the node, patch on its status, get on
// the DaemonSet, and get on the customresourcedefinitions, or create and update where
// they are registered. RBAC cannot say "its own node": examples/deploy/agent.yaml has a
// ValidatingAdmissionPolicy that does. An error that matches a denial says which rule
// would grant it.
//
// Do not use it to read an agent's configuration: that is configresolve/kube, whose
// Connection makes the clients and configurations that this package takes.
package kube
