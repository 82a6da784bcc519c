// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package node_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/kube"
)

// onceClosed returns a probe that calls f when it has first seen the gate closed.
func onceClosed(probe func(context.Context) (string, error), f func()) func(context.Context) (string, error) {
	var once sync.Once
	return func(ctx context.Context) (string, error) {
		seen, err := probe(ctx)
		if seen != "" {
			once.Do(f)
		}
		return seen, err
	}
}

func TestRDY1_TheAPIServerIsWaitedFor(t *testing.T) {
	server.KillAPIServer()
	g := kube.APIServer(config(t, denied.Token()))
	g.Timeout = time.Minute
	started := make(chan error, 1)
	g.Probe = onceClosed(g.Probe, func() {
		go func() { started <- server.StartAPIServer(context.WithoutCancel(t.Context())) }()
	})
	require.NoError(t, g.Wait(t.Context()))
	require.NoError(t, <-started)
	changes, err := g.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, changes)

	server.KillEtcd()
	t.Cleanup(func() {
		require.NoError(t, server.StartEtcd())
		require.NoError(t, server.StartAPIServer(context.Background()))
	})
	eventually(t, func(ctx context.Context) error { // its cached state may be slightly old
		if _, err := server.Admin().Get(ctx, "/readyz"); err == nil {
			return errors.New("it is ready")
		}
		return nil
	})
	g.Timeout = 10 * time.Second
	require.ErrorContains(t, g.Wait(t.Context()), "wait for the API server: last seen: ")
}

const versionLabel = "agent.example.org/schema"

// crd is a definition whose schema gains a different field in each version.
func crd(plural, version string) *unstructured.Unstructured {
	kind := strings.ToUpper(plural[:1]) + plural[1:]
	return &unstructured.Unstructured{Object: fields{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": fields{"name": plural + ".agent.example.org", "labels": fields{versionLabel: version}},
		"spec": fields{
			"group": "agent.example.org", "scope": "Cluster", "names": fields{"kind": kind, "plural": plural},
			"versions": []any{fields{"name": "v1", "served": true, "storage": true, "schema": fields{"openAPIV3Schema": fields{
				"type": "object", "properties": fields{"spec": fields{"type": "object", "description": "of " + version}},
			}}}},
		},
	}}
}

func definitions(client dynamic.Interface, version string, plurals ...string) kube.Definitions {
	d := kube.Definitions{Client: client, VersionLabel: versionLabel}
	for _, plural := range plurals {
		d.List = append(d.List, crd(plural, version))
	}
	return d
}

const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

func TestRDY1_CustomResourcesAreRegisteredAndNeverDowngraded(t *testing.T) {
	c := admin(t)
	is := func(plural string) (label, description string) {
		raw, err := server.Admin().Get(t.Context(), crds+"/"+plural+".agent.example.org")
		require.NoError(t, err)
		object := &unstructured.Unstructured{}
		require.NoError(t, object.UnmarshalJSON(raw))
		versions, _, err := unstructured.NestedSlice(object.Object, "spec", "versions")
		require.NoError(t, err)
		description, _, err = unstructured.NestedString(versions[0].(fields), "schema", "openAPIV3Schema", "properties", "spec", "description")
		require.NoError(t, err)
		return object.GetLabels()[versionLabel], description
	}
	first := definitions(c, "1.2", "apples", "pears")
	changes, err := first.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{
		"create the custom resource apples.agent.example.org in version 1.2",
		"create the custom resource pears.agent.example.org in version 1.2",
	}, changes)
	apply := func(d kube.Definitions) bootstrap.Status {
		t.Helper()
		report, err := (&bootstrap.Plan{Steps: []bootstrap.Step{{Name: "crds", Action: d}}}).Apply(t.Context())
		require.NoError(t, err)
		return report.Results[0].Status
	}
	require.Equal(t, bootstrap.Changed, apply(first))
	require.Equal(t, bootstrap.Unchanged, apply(first))
	open, err := kube.Established(c, "apples.agent.example.org", "pears.agent.example.org").Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, open)

	newer := definitions(c, "1.10", "apples")
	changes, err = newer.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{`update the custom resource apples.agent.example.org to version 1.10 (is "1.2")`}, changes)
	require.Equal(t, bootstrap.Changed, apply(newer))
	label, description := is("apples")
	require.Equal(t, "1.10 of 1.10", label+" "+description)

	require.Equal(t, bootstrap.Unchanged, apply(first), "an older agent leaves the newer one's")
	label, description = is("apples")
	require.Equal(t, "1.10 of 1.10", label+" "+description)

	// A definition made by hand has no version, and keeps its other labels.
	require.NoError(t, server.Admin().Merge(t.Context(), crds+"/pears.agent.example.org", fields{"metadata": fields{"labels": fields{versionLabel: nil, "own": "x"}}}))
	require.Equal(t, bootstrap.Changed, apply(definitions(c, "1.0", "pears")))
	label, description = is("pears")
	require.Equal(t, "1.0 of 1.0", label+" "+description)

	// Several agents of two versions start at once.
	var all sync.WaitGroup
	for i := range 8 {
		d := definitions(admin(t), fmt.Sprintf("2.%d", i%2), "plums", "figs")
		all.Go(func() {
			if err := d.Apply(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, plural := range []string{"plums", "figs"} {
		label, description = is(plural)
		require.Equal(t, "2.1 of 2.1", label+" "+description)
	}
}

func TestRDY1_CustomResourcesAreWaitedFor(t *testing.T) {
	c := admin(t)
	g := kube.Established(c, "nuts.agent.example.org")
	changes, err := g.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"wait for the custom resources nuts.agent.example.org: nuts.agent.example.org is not installed"}, changes)
	g.Probe = onceClosed(g.Probe, func() { create(t, crds, crd("nuts", "1").Object) })
	require.NoError(t, g.Wait(t.Context()))

	_, err = kube.Established(client(t, denied.Token()), "nuts.agent.example.org").Check(t.Context())
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, `{apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"], resourceNames: ["nuts.agent.example.org"], verbs: ["get"]}`)
	err = definitions(client(t, denied.Token()), "1.0", "nuts").Apply(t.Context())
	require.True(t, apierrors.IsForbidden(err), "%v", err)

	// A name that another resource has is never accepted.
	clash := crd("nutz", "1")
	require.NoError(t, unstructured.SetNestedField(clash.Object, "Nuts", "spec", "names", "kind"))
	create(t, crds, clash.Object)
	g = kube.Established(c, clash.GetName())
	g.Timeout = time.Second
	require.ErrorContains(t, g.Wait(t.Context()), "nutz.agent.example.org is not established yet: ")
}

// decide asks for the agent of a DaemonSet in kube-system.
func decide(ctx context.Context, client dynamic.Interface, name, node string) (uninstall bool, reason string, err error) {
	return kube.Decide(ctx, client, "kube-system", name, node)
}

// daemonSet creates a DaemonSet with the template's spec.
func daemonSet(t *testing.T, name string, spec fields) {
	t.Helper()
	all := fields{"containers": []any{fields{"name": "a", "image": "a"}}}
	maps.Copy(all, spec)
	create(t, "/apis/apps/v1/namespaces/kube-system/daemonsets", fields{"metadata": fields{"name": name}, "spec": fields{
		"selector": fields{"matchLabels": fields{"app": name}},
		"template": fields{"metadata": fields{"labels": fields{"app": name}}, "spec": all},
	}})
}

func TestRDY4_RestartOrUninstall(t *testing.T) {
	createNode(t, "decide", fields{"zone": "a", "size": "8"})
	c := admin(t)
	decides := func(client dynamic.Interface, name, node string, uninstall bool, reason string) {
		t.Helper()
		undo, why, err := decide(t.Context(), client, name, node)
		require.Equal(t, []any{uninstall, reason}, []any{undo, why}, "%v", err)
		require.Equal(t, reason == "unauthorized" || reason == "unknown", err != nil, "%v", err)
	}
	path := "/apis/apps/v1/namespaces/kube-system/daemonsets/"

	daemonSet(t, "plain", nil)
	decides(c, "plain", "decide", false, "restarting")
	require.NoError(t, server.Admin().Delete(t.Context(), path+"plain?propagationPolicy=Foreground"))
	decides(c, "plain", "decide", true, "deleting") // no controller runs here to collect its pods
	require.NoError(t, server.Admin().Merge(t.Context(), path+"plain", fields{"metadata": fields{"finalizers": nil}}))
	decides(c, "plain", "decide", true, "gone")

	daemonSet(t, "orphaning", nil)
	require.NoError(t, server.Admin().Delete(t.Context(), path+"orphaning?propagationPolicy=Orphan"))
	decides(c, "orphaning", "decide", false, "restarting")

	decides(client(t, denied.Token()), "agent", "decide", false, "unauthorized")
	decides(client(t, "no such token"), "agent", "decide", false, "unauthorized")
	decides(c, "agent", "nowhere", false, "unknown")
	decides(c, "agent", "", false, "unknown")
	decides(nil, "agent", "decide", false, "unknown")

	// The account is deleted with the release: the token of a pod still running is no longer
	// valid.
	create(t, accounts, fields{"metadata": fields{"name": "going"}})
	going := client(t, tokenOf(t, "going", fields{}))
	require.NoError(t, server.Admin().Delete(t.Context(), accounts+"/going"))
	eventually(t, func(ctx context.Context) error {
		if uninstall, reason, err := decide(ctx, going, "agent", "decide"); !apierrors.IsUnauthorized(err) || uninstall {
			return fmt.Errorf("%s: %w", reason, err)
		}
		return nil
	})
}

// Affinities that the API server accepts.
func TestRDY4_NodesThatTheAffinitySelects(t *testing.T) {
	createNode(t, "affine", fields{"zone": "a", "size": "8"})
	c := admin(t)
	for i, tc := range []struct {
		terms   string
		matches bool
	}{
		{`[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]},{"key":"size","operator":"Gt","values":["7"]}]}]`, true},
		{`[{"matchExpressions":[{"key":"zone","operator":"In","values":["a"]},{"key":"size","operator":"Lt","values":["7"]}]}]`, false},
		{`[{"matchExpressions":[{"key":"gone","operator":"Exists"}]},{"matchExpressions":[{"key":"gone","operator":"DoesNotExist"}]}]`, true},
		{`[{"matchExpressions":[{"key":"zone","operator":"NotIn","values":["a"]}]}]`, false},
		{`[{"matchFields":[{"key":"metadata.name","operator":"In","values":["affine"]}]}]`, true},
		{`[{"matchFields":[{"key":"metadata.name","operator":"NotIn","values":["affine"]}],"matchExpressions":[{"key":"zone","operator":"Exists"}]}]`, false},
		{`[{}]`, false},
	} {
		var terms unstructured.Unstructured
		require.NoError(t, terms.UnmarshalJSON([]byte(`{"kind":"x","apiVersion":"v1","terms":`+tc.terms+`}`)))
		name := fmt.Sprint("affine-", i)
		daemonSet(t, name, fields{"affinity": fields{"nodeAffinity": fields{
			"requiredDuringSchedulingIgnoredDuringExecution": fields{"nodeSelectorTerms": terms.Object["terms"]}}}})
		uninstall, reason, err := decide(t.Context(), c, name, "affine")
		require.NoError(t, err)
		require.Equal(t, !tc.matches, uninstall, "%s: %s", tc.terms, reason)
	}
}
