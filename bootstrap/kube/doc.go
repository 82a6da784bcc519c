// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package kube has what an agent does in its cluster around a plan: wait for the API
// server and for custom resources, register its own, mark its node as ready, report the
// outcome of runs, and, when it ends, tell a restart from its removal.
//
//	plan := bootstrap.Plan{
//		Gates: []bootstrap.Step{{Name: "api-server", Gate: kube.APIServer(config)}},
//		Steps: []bootstrap.Step{
//			{Name: "crds", Action: kube.Definitions{Client: client, List: crds, VersionLabel: "agent.example.org/schema"}},
//			{Name: "cni", ...},
//			{Name: "node", After: []string{"cni"}, Action: kube.Node{Client: client, Name: name, Taint: "agent.example.org/not-ready"}},
//		},
//	}
//	...
//	uninstall, reason, err := kube.Decide(ctx, client, namespace, "agent", name)
//
// It uses client-go's dynamic client, and its metadata client in a [Reporter]. [Node] and
// [Definitions] are steps of a plan, and the gates are those of package bootstrap/gate.
// Changes in the cluster are not undone with the node's, except by [Reporter.Withdraw].
//
// # What it needs
//
// No capability. In the cluster: get and patch on the node, patch on its status, get on
// the DaemonSet, and get on the customresourcedefinitions, also create and update to
// register them. RBAC cannot express "its own node"; examples/deploy/agent.yaml has a
// ValidatingAdmissionPolicy that does. The error of a denied request names the rule that
// would grant it.
//
// Do not use it to read an agent's configuration: use configresolve/kube, whose
// Connection makes the clients and configurations that this package takes.
package kube
