// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/kube"
)

// The results of nodes beside those of reports.
const (
	silent   = "no report"
	notReady = "node not ready"
	outdated = "outdated"
)

// tooMuch is the outcome of a node that writes more than is read.
var tooMuch = kube.Outcome{Result: "garbled"}

// fleet is the state of the nodes.
type fleet struct {
	Nodes    int            `json:"nodes"`
	Results  map[string]int `json:"results"`  // nodes, by the worst of their results
	Versions map[string]int `json:"versions"` // reports, by the version of the program
	Groups   []*group       `json:"groups"`   // of the nodes that are not ready
}

// group describes the nodes with the same failure.
type group struct {
	Agent  string    `json:"agent,omitempty"`
	Result string    `json:"result"`
	Step   string    `json:"step,omitempty"`
	Code   string    `json:"code,omitempty"`
	Cause  string    `json:"cause,omitempty"`
	Remedy string    `json:"remedy,omitempty"`
	Since  time.Time `json:"since,omitzero"` // the first of them
	Nodes  []string  `json:"nodes"`
}

func (f *fleet) well() bool { return len(f.Groups) == 0 }

// More agents than maxAgents on one node are not counted one by one.
const maxAgents = 16

// readFleet reads the nodes' annotations and states. It keeps their content, but not the nodes.
func (c cluster) readFleet(ctx context.Context, selector, agent, daemonSet string) (*fleet, error) {
	all := map[string][]kube.Outcome{}
	err := c.EachNode(ctx, selector, func(node *metav1.PartialObjectMetadata, err error) {
		if all[node.Name] = outcomes(node.Annotations, agent); err != nil {
			all[node.Name] = []kube.Outcome{tooMuch}
		}
	})
	if err != nil {
		return nil, err
	}
	isNotReady, err := c.notReady(ctx, selector)
	if err != nil {
		return nil, err
	}
	newest, err := c.newestPods(ctx, daemonSet)
	if err != nil {
		return nil, err
	}
	for name := range all {
		all[name] = judged(all[name], isNotReady[name], newest[name])
	}
	f := &fleet{Results: map[string]int{}, Versions: map[string]int{}, Groups: []*group{}}
	groups := map[kube.Outcome]*group{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f.add(groups, name, all[name])
	}
	if f.Nodes > 0 && f.Results[silent] == f.Nodes {
		g := groups[kube.Outcome{Agent: agent, Result: silent}]
		g.Cause = "No node has a report: nothing reports, or all was uninstalled."
		g.Remedy = "After an uninstall of all nodes this is as it should be. Otherwise run nodeinit with --report-node, with the rights that it needs."
	}
	f.Groups = slices.SortedFunc(maps.Values(groups), func(a, b *group) int {
		return cmp.Or(cmp.Compare(severity(b.Result), severity(a.Result)), cmp.Compare(len(b.Nodes), len(a.Nodes)), cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Step, b.Step), cmp.Compare(a.Agent, b.Agent))
	})
	return f, nil
}

// outcomes returns the outcomes of one agent or, if none is named, of all.
func outcomes(annotations map[string]string, agent string) []kube.Outcome {
	all := slices.DeleteFunc(kube.Outcomes(annotations), func(o kube.Outcome) bool { return agent != "" && o.Agent != agent })
	switch {
	case len(all) == 0:
		return []kube.Outcome{{Agent: agent, Result: silent}}
	case len(all) > maxAgents:
		return append(all[:maxAgents:maxAgents], tooMuch)
	}
	return all
}

// severity orders results: the worst is the highest.
func severity(r string) int {
	return slices.Index([]string{"ready", "drifted", outdated, silent, notReady, "garbled", "failed"}, r)
}

func (f *fleet) add(groups map[kube.Outcome]*group, node string, all []kube.Outcome) {
	f.Nodes++
	f.Results[slices.MaxFunc(all, func(a, b kube.Outcome) int { return severity(a.Result) - severity(b.Result) }).Result]++
	for _, o := range all {
		if o.Version != "" {
			f.Versions[o.Version]++
		}
		if o.Result == "ready" {
			continue
		}
		key := kube.Outcome{Agent: o.Agent, Result: o.Result, Step: o.Step, Code: o.Code}
		g := groups[key]
		if g == nil {
			g = &group{Agent: o.Agent, Result: o.Result, Step: o.Step, Code: o.Code, Since: o.Since}
			g.Cause, g.Remedy = meaning(o)
			groups[key] = g
		}
		if g.Nodes = append(g.Nodes, node); g.Since.IsZero() || o.Since.Before(g.Since) && !o.Since.IsZero() {
			g.Since = o.Since
		}
	}
}

// meaning returns cause and remedy.
func meaning(o kube.Outcome) (cause, remedy string) {
	switch o.Result {
	case notReady:
		return "The kubelet does not say that the node is ready.", "kubectl describe node shows why: the kubelet may be down, or the container runtime may have no network."
	case outdated:
		return "The newest pod of the DaemonSet on the node has not reported.", "Look at that pod: it may be starting, hang, or have no right to report."
	case silent:
		return "Nothing has been reported, or all was uninstalled.", "Look at the agent's pod on the node: it may never have started, or have no right to report."
	case "drifted":
		return "A check found something to do.", "Restart the agent's pod on the node, which applies again, and look for the program that changes the node."
	case "garbled":
		if o.Agent == "" {
			return fmt.Sprintf("One node has reports of more than %d agents, or more metadata than is read.", maxAgents), "Look at the node's annotations, and for what writes them."
		}
		return "The annotation cannot be read.", "Check which other program writes it; the next change is reported again."
	}
	cause, remedy = bootstrap.Meaning(o.Code)
	return cause, strings.TrimSuffix(remedy+" "+withNodeinit[o.Code], " ")
}

// withNodeinit has, by code, the flag or command of nodeinit that is the remedy or shows it.
var withNodeinit = map[string]string{
	"lock.held":                  "nodeinit --lock-timeout waits longer.",
	"ledger.not-owner":           "nodeinit apply --take-over does that, once the owner that nodeinit status shows has gone.",
	"ledger.two-agents":          "nodeinit --agent NAME gives it one, and apply --take-over takes it over.",
	"ledger.unreadable":          "nodeinit status on the node names them; nodeinit forget OBJECT drops one, and --damaged all, and keeps the other records.",
	"ledger.conflict":            "nodeinit apply --override makes this agent prevail, and nodeinit release --agent NAME gives up the wishes of one that has gone.",
	"ledger.changed":             "nodeinit status on the node lists such objects; nodeinit forget OBJECT leaves one as it is, and nodeinit uninstall --accept-kept all of them.",
	"cgroup.foreign":             "nodeinit --cgroup-root names another path.",
	"cgroup.not-root":            "nodeinit --cgroup-repair replaces it.",
	"bpffs.foreign":              "nodeinit --bpf-root names another path, and --bpf-fallback one for nodes where that is taken.",
	"sysctl.directory-read-only": "nodeinit --sysctl-conf-dir names another directory; if it is empty, the values are set without a file.",
	"cni.plugin-missing":         "nodeinit --plugins installs it, and --cni-wait waits for another installer.",
	"cni.target-missing":         "nodeinit --cni-wait waits longer.",
}

// node is the state of one node.
type node struct {
	Name    string   `json:"node"`
	Reports []report `json:"reports"`
}

// report is one agent's report on a node, with the text of its condition.
type report struct {
	kube.Outcome
	Message string `json:"message,omitempty"`
	Cause   string `json:"cause,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
}

func (n *node) well() bool {
	return !slices.ContainsFunc(n.Reports, func(r report) bool { return r.Result != "ready" })
}

// readNode reads one node as a whole: its condition has the error.
func (c cluster) readNode(ctx context.Context, name, agent, daemonSet string) (*node, error) {
	object, err := c.Dynamic.Resource(nodes).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get node %s: %w", name, err)
	}
	newest, err := c.newestPods(ctx, daemonSet)
	if err != nil {
		return nil, err
	}
	n := &node{Name: name}
	_, isReady := condition(object, "Ready")
	for _, o := range judged(outcomes(object.GetAnnotations(), agent), !isReady, newest[name]) {
		of := o.Condition()
		if o.Result == notReady {
			of = "Ready"
		}
		r := report{Outcome: o}
		r.Message, _ = condition(object, of)
		if o.Result != "ready" {
			r.Cause, r.Remedy = meaning(o)
		}
		n.Reports = append(n.Reports, r)
	}
	return n, nil
}

// condition returns the message of the node's condition of a type, and whether it is true.
func condition(object *unstructured.Unstructured, of string) (message string, isTrue bool) {
	all, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions") // other values have no message
	for _, one := range all {
		if c, ok := one.(map[string]any); ok && c["type"] == of {
			text, _ := c["message"].(string)
			return bounded(text), c["status"] == "True"
		}
	}
	return "", false
}
