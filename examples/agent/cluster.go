// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/kube"
	"github.com/slipway-dev/slipway/bootstrap/preflight"
	"github.com/slipway-dev/slipway/cniinstall"
	configkube "github.com/slipway-dev/slipway/configresolve/kube"
)

const (
	stepAccess = "plugin-kubeconfig"
	stepNode   = "node"
)

var (
	nodes    = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	accounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
)

// patience is the longest wait for the cluster, except at the start: it is a part of the 30
// seconds that a pod usually has to end, and of the time in which a node is not repaired.
const patience = 10 * time.Second

type clusterFlags struct {
	node, kubeconfig, taint, daemonSet, account, pluginKubeconfig string
}

func (c *clusterFlags) flags(f *flag.FlagSet) {
	f.StringVar(&c.node, "node", "", "name of this node, to mark as ready; empty: no cluster is used")
	f.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig file; empty: the pod's credentials")
	f.StringVar(&c.taint, "taint", "", "key of the taint that keeps pods away until the node is ready")
	f.StringVar(&c.pluginKubeconfig, "plugin-kubeconfig", "", "kubeconfig to write on the host, for CNI plugins that ask the API server, with this agent's token; empty: none")
	f.StringVar(&c.daemonSet, "daemonset", "", "NAMESPACE/NAME of this agent's DaemonSet: at the end, undo all changes to the node if the agent will not come back; empty: undo nothing")
	f.StringVar(&c.account, "account", "", "name of the ServiceAccount of the DaemonSet's pods: if it is deleted, the agent will not come back; empty: once it is, nothing is undone")
}

func (c *clusterFlags) validate() error {
	namespace, name, both := strings.Cut(c.daemonSet, "/")
	switch {
	case c.daemonSet != "" && (!both || namespace == "" || name == ""):
		return fmt.Errorf("--daemonset %q: want NAMESPACE/NAME", c.daemonSet)
	case c.daemonSet == "" && c.account != "":
		return errors.New("--account needs --daemonset")
	case c.node == "" && (c.daemonSet != "" || c.taint != "" || c.kubeconfig != "" || c.pluginKubeconfig != ""):
		return errors.New("--daemonset, --taint, --kubeconfig and --plugin-kubeconfig need --node")
	}
	return nil
}

// clients reach the cluster; the zero value asks none.
type clients struct {
	config  *rest.Config
	dynamic dynamic.Interface
}

func (c *clusterFlags) connect() (clients, error) {
	if c.node == "" {
		return clients{}, nil
	}
	connection := configkube.Connection{Kubeconfig: c.kubeconfig, UserAgent: "slipway-agent"}
	config, err := connection.Config()
	if err != nil {
		return clients{}, err
	}
	client, err := connection.Client()
	if err != nil {
		return clients{}, err
	}
	return clients{config, client.Dynamic}, nil
}

func (a *agent) apiServer() bootstrap.Step {
	g := kube.APIServer(a.clients.config)
	g.Timeout = a.gateTimeout
	return bootstrap.Step{Name: "gate api-server", Gate: g}
}

// mayMark checks, before anything is changed, whether the node may be marked in the end.
func (a *agent) mayMark() bootstrap.Step {
	return bootstrap.Step{Name: "gate access", Local: true, Gate: preflight.Checks{
		{Name: "access", Find: kube.Access(a.clients.dynamic, a.node().Rules()...)},
	}}
}

// accessSteps come before the CNI configuration: the files by which plugins reach the
// cluster must be there when the first one runs.
func (a *agent) accessSteps() []bootstrap.Step {
	if a.cluster.pluginKubeconfig == "" {
		return nil
	}
	config := a.clients.config
	return []bootstrap.Step{{Name: stepAccess, Prepare: hostpath.Kubeconfig{
		Path: a.cluster.pluginKubeconfig, Server: config.Host,
		CA: config.CAData, CAFile: config.CAFile, TokenFile: config.BearerTokenFile,
	}.Prepare}}
}

func (a *agent) node() kube.Node {
	node := kube.Node{
		Client: a.clients.dynamic, Name: a.cluster.node, Taint: a.cluster.taint,
		Reason: "SlipwayAgentIsUp", Message: "the agent has prepared the node",
	}
	if a.cni.plugin != "" && a.cni.subnet != "" {
		node.Annotations = map[string]string{"agent.example.org/subnet": a.cni.subnet}
	}
	return node
}

// nodeSteps come last: they let pods come.
func (a *agent) nodeSteps() []bootstrap.Step {
	if a.clients.dynamic == nil {
		return nil
	}
	after := a.base()
	if a.cni.plugin != "" {
		after = append(after, stepCNI)
	}
	if a.cni.plugin != "" && a.cni.waitLoaded > 0 {
		after = append(after, "cni-loaded")
	}
	return []bootstrap.Step{{Name: stepNode, After: after, Timeout: patience, Action: a.node()}}
}

// farewell is less than a kubelet's 30 seconds: it ends with an error that names the
// holder of the lock, or the changes not undone, rather than with SIGKILL.
const farewell = 25 * time.Second

// leave undoes the changes to the node if this agent does not come back to it: all of them, or
// none while there are pods that need one for their deletion.
func (a *agent) leave(ctx context.Context, plan *bootstrap.Plan) error {
	namespace, name, ok := strings.Cut(a.cluster.daemonSet, "/")
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	short, stop := context.WithTimeout(ctx, patience)
	defer stop()
	uninstall, reason, err := kube.Decide(short, a.clients.dynamic, namespace, name, a.cluster.node)
	if err != nil && a.orphaned.Load() {
		uninstall, reason = true, "account-deleted"
	}
	a.log.Info("asked to end", "uninstall", uninstall, "reason", reason, "error", err)
	switch {
	case err == nil && !uninstall:
		return nil
	case !uninstall:
		return a.leaveAll(ctx, plan, fmt.Errorf("whether the agent comes back is not known: %w", err))
	}
	report, err := plan.Uninstall(ctx)
	if errors.Is(err, cniinstall.ErrInUse) {
		return a.leaveAll(ctx, plan, err)
	}
	a.log.Info("undone", "steps", report.Summary())
	return err
}

// leaveAll says why nothing is undone, also in nodeinit status: a log goes with its pod.
func (a *agent) leaveAll(ctx context.Context, plan *bootstrap.Plan, why error) error {
	last := *plan
	last.Command, last.Gates, last.Steps = "end", nil, []bootstrap.Step{{Name: stepNode, Action: a.node()}}
	last.Prepare = func(context.Context, *bootstrap.Plan) error {
		return &bootstrap.StepError{Step: stepNode, Op: "end", Err: fmt.Errorf("nothing is undone (if the agent does not come back, once the pods of its network have gone: nodeinit uninstall --agent=%s --any-owner): %w", network, why)}
	}
	_, err := last.Apply(ctx)
	return err
}

// watchAccount notes when the account of the agent's pods is deleted, as it is with all of a
// manifest: the API server answers no question then, but ends no watch either. Accounts hardly
// ever change, while each node that watched the DaemonSet would be told of each other node's
// pod.
func (a *agent) watchAccount(ctx context.Context) {
	if a.cluster.account == "" {
		return
	}
	namespace, _, _ := strings.Cut(a.cluster.daemonSet, "/")
	for {
		events, err := a.clients.dynamic.Resource(accounts).Namespace(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + a.cluster.account})
		if err != nil {
			a.log.Info("the account's deletion is not seen", "why", err)
			events = watch.NewEmptyWatch()
		}
		for event := range events.ResultChan() {
			if event.Type == watch.Added || event.Type == watch.Deleted {
				a.log.Info("the account", "seen", event.Type)
				a.orphaned.Store(event.Type == watch.Deleted)
			}
		}
		time.Sleep(a.interval)
	}
}
