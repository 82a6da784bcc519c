// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-dev/slipway/bootstrap/kube"
	configkube "github.com/slipway-dev/slipway/configresolve/kube"
)

var (
	nodes      = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	daemonSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
)

// cluster is asked with two clients: one gets lists as the tables that kubectl prints, so that
// a node's status comes without its images.
type cluster struct {
	*configkube.Client
	tables dynamic.Interface
}

func connect(kubeconfig string) (cluster, error) {
	connection := configkube.Connection{Kubeconfig: kubeconfig, UserAgent: "slipway-fleet", Spread: time.Second}
	client, err := connection.Client()
	if err != nil {
		return cluster{}, err
	}
	connection.Wrap = func(next http.RoundTripper) http.RoundTripper { return asTable{next} }
	tables, err := connection.Client()
	if err != nil {
		return cluster{}, err
	}
	return cluster{client, tables.Dynamic}, nil
}

// asTable asks for tables: of nodes without their metadata, which are read by themselves.
type asTable struct{ next http.RoundTripper }

func (t asTable) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	if strings.HasSuffix(r.URL.Path, "/nodes") {
		r.URL.RawQuery += "&includeObject=None"
	}
	return t.next.RoundTrip(r)
}

// eachRow calls visit with the cells of each row of a list, by their columns, and the object's metadata.
func (c cluster) eachRow(ctx context.Context, list dynamic.ResourceInterface, selector string, visit func(cells map[string]any, object unstructured.Unstructured)) error {
	for options := (metav1.ListOptions{LabelSelector: selector, Limit: 100}); ; {
		table, err := list.List(ctx, options)
		if err != nil {
			return err
		}
		columns, _, _ := unstructured.NestedSlice(table.Object, "columnDefinitions")
		rows, isTable, _ := unstructured.NestedSlice(table.Object, "rows")
		if !isTable && len(columns) == 0 {
			return errors.New("the answer is no table")
		}
		for _, row := range rows {
			row, _ := row.(map[string]any) // of an answer in another form nothing is known
			texts, _ := row["cells"].([]any)
			object, _ := row["object"].(map[string]any)
			cells := map[string]any{}
			for i, column := range columns[:min(len(columns), len(texts))] {
				column, _ := column.(map[string]any)
				cells[fmt.Sprint(column["name"])] = texts[i]
			}
			visit(cells, unstructured.Unstructured{Object: object})
		}
		if options.Continue = table.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// notReady returns the nodes whose kubelets do not say that they are ready.
func (c cluster) notReady(ctx context.Context, selector string) (map[string]bool, error) {
	all := map[string]bool{}
	err := c.eachRow(ctx, c.tables.Resource(nodes), selector, func(cells map[string]any, _ unstructured.Unstructured) {
		status, _, _ := strings.Cut(fmt.Sprint(cells["Status"]), ",") // such as Ready,SchedulingDisabled
		all[fmt.Sprint(cells["Name"])] = status != "Ready"
	})
	if err != nil {
		return nil, fmt.Errorf("list the nodes' states: %w", err)
	}
	return all, nil
}

// pod is the newest one of a DaemonSet on a node.
type pod struct {
	uid  string
	made time.Time
}

// newestPods returns them by their nodes; none without a DaemonSet.
func (c cluster) newestPods(ctx context.Context, daemonSet string) (map[string]pod, error) {
	if daemonSet == "" {
		return nil, nil
	}
	namespace, name, _ := strings.Cut(daemonSet, "/")
	set, err := c.Dynamic.Resource(daemonSets).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get daemonset %s: %w", daemonSet, err)
	}
	var selector metav1.LabelSelector
	raw, _, _ := unstructured.NestedMap(set.Object, "spec", "selector")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &selector); err != nil {
		return nil, fmt.Errorf("daemonset %s: %w", daemonSet, err)
	}
	newest := map[string]pod{}
	err = c.eachRow(ctx, c.tables.Resource(pods).Namespace(namespace), metav1.FormatLabelSelector(&selector), func(cells map[string]any, object unstructured.Unstructured) {
		node, made := fmt.Sprint(cells["Node"]), object.GetCreationTimestamp().Time
		if made.After(newest[node].made) {
			newest[node] = pod{string(object.GetUID()), made}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list the pods of daemonset %s: %w", daemonSet, err)
	}
	return newest, nil
}

// judged adds to a node's reports that it is not ready all the same, or that the newest pod on
// it has not reported: none of them is its, nor, where no owner is known, as new.
func judged(all []kube.Outcome, isNotReady bool, newest pod) []kube.Outcome {
	reported := func(o kube.Outcome) bool {
		return o.Result == silent || o.Owner == newest.uid || o.Owner == "" && !o.Time.Before(newest.made)
	}
	if isNotReady {
		all = append(all, kube.Outcome{Result: notReady})
	}
	if !newest.made.IsZero() && !slices.ContainsFunc(all, reported) {
		all = append(all, kube.Outcome{Result: outdated, Since: newest.made})
	}
	return all
}
