// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/kube"
	"github.com/slipway-dev/slipway/internal/code"
)

type values = map[string]string

type fields = map[string]any

const namespace = "kube-system"

var (
	v2       = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumnodeconfigs"}
	v2alpha1 = schema.GroupVersionResource{Group: "cilium.io", Version: "v2alpha1", Resource: "ciliumnodeconfigs"}
)

// clientOf is a client of servers, http://a if none are given, over a network that the test is.
func clientOf(t *testing.T, network http.RoundTripper, servers ...string) *kube.Client {
	t.Helper()
	if servers == nil {
		servers = []string{"http://a"}
	}
	connection := kube.Connection{Servers: servers, Wrap: func(http.RoundTripper) http.RoundTripper { return network }}
	if strings.HasPrefix(servers[0], "https:") {
		connection.Kubeconfig = writeKubeconfig(t, servers[0])
	}
	client, err := connection.Client()
	require.NoError(t, err)
	return client
}

func mapOf(c *kube.Client) configresolve.Source {
	return c.ConfigMap(namespace, "cfg")
}

func nodeConfigsOf(c *kube.Client) configresolve.Source {
	return c.NodeConfigs(namespace, "me", kube.Cilium().NodeConfigs...)
}

// named returns a source of the one node config of that name, whatever its selector.
func named(c *kube.Client, namespace, name string) configresolve.Source {
	source, err := c.Source(configresolve.Ref{Kind: "cilium-node-config", Namespace: namespace, Name: name}, kube.Cilium(), "")
	if err != nil {
		panic(err)
	}
	return source
}

func nodeOf(c *kube.Client) configresolve.Source {
	return c.Node("me", kube.Cilium().Prefix)
}

// cluster is an API server without a network, and a client of it.
type cluster struct {
	*kube.Client
	*watchAPI
}

// newCluster makes one that serves ConfigMaps, Nodes and both versions of node configs.
func newCluster(t *testing.T, objects ...*unstructured.Unstructured) cluster {
	t.Helper()
	api := serve(map[string]map[string]fields{mapsPath: {}, nodesPath: {}, v2Path: {}, olderPath: {}})
	for _, o := range objects {
		path := map[string]string{"v1": mapsPath, "meta.k8s.io/v1": nodesPath, "cilium.io/v2": v2Path, "cilium.io/v2alpha1": olderPath}[o.GetAPIVersion()]
		api.objects[path][o.GetName()] = o.Object
	}
	return cluster{clientOf(t, api), api}
}

func configMap(name string, data values) *unstructured.Unstructured {
	object := fields{"apiVersion": "v1", "kind": "ConfigMap", "metadata": fields{"name": name, "namespace": namespace},
		"binaryData": fields{"blob": "AAAA"}}
	if data != nil {
		object["data"] = toAny(data)
	}
	return &unstructured.Unstructured{Object: object}
}

func toAny(v values) fields {
	out := fields{}
	for key, value := range v {
		out[key] = value
	}
	return out
}

// nodeConfig has a selector, which may be nil, as JSON.
func nodeConfig(gvr schema.GroupVersionResource, name, selector string, defaults values) *unstructured.Unstructured {
	spec := fields{}
	if selector != "" {
		var parsed any
		if err := json.Unmarshal([]byte(selector), &parsed); err != nil {
			panic(err)
		}
		spec["nodeSelector"] = parsed
	}
	if defaults != nil {
		spec["defaults"] = toAny(defaults)
	}
	return &unstructured.Unstructured{Object: fields{"apiVersion": gvr.GroupVersion().String(), "kind": "CiliumNodeConfig",
		"metadata": fields{"name": name, "namespace": namespace}, "spec": spec}}
}

func node(name string, labels, annotations values) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: fields{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}}
	object.SetName(name)
	object.SetLabels(labels)
	object.SetAnnotations(annotations)
	return object
}

func resolve(t *testing.T, sources ...configresolve.Source) *configresolve.Config {
	t.Helper()
	c, err := configresolve.Resolve(t.Context(), sources...)
	require.NoError(t, err)
	return c
}

func all(c *configresolve.Config) values { return maps.Collect(c.All()) }

func TestCFG3_ConfigMap(t *testing.T) {
	want := values{"a": "1", "empty": "", "text": " kept \n\n"}
	c := newCluster(t, configMap("cilium-config", want), configMap("without", nil))
	config := resolve(t, c.Client.ConfigMap(namespace, "cilium-config"))
	require.Equal(t, want, all(config), "binaryData does not count")
	require.Equal(t, "config-map:kube-system/cilium-config", config.Explain().Sources[0].String())

	config = resolve(t, c.Client.ConfigMap(namespace, "without"))
	require.Empty(t, all(config))
	require.Empty(t, config.Explain().Sources)
}

func TestCFG4_MissingConfigMap(t *testing.T) {
	c := newCluster(t)
	missing := c.Client.ConfigMap(namespace, "none")
	_, err := configresolve.Resolve(t.Context(), missing)
	require.ErrorIs(t, err, configresolve.ErrMissing)
	require.ErrorContains(t, err, "ConfigMap kube-system/none")
	require.Empty(t, all(resolve(t, configresolve.Optional(missing))))

	delete(c.objects, mapsPath)
	_, err = configresolve.Resolve(t.Context(), configresolve.Optional(missing))
	require.Error(t, err, "the answer is not an API server's")
	require.NotErrorIs(t, err, configresolve.ErrMissing)
}

// A proxy may answer 200 with something else, whatever it was asked for.
func TestCFG4_AnAnswerOfAnotherKindOrNameIsAnError(t *testing.T) {
	const name, labelled = `"name":"cfg"`, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"other","labels":{"config.cilium.io/a":"1"}}}`
	const list = `{"apiVersion":"cilium.io/v2","kind":"CiliumNodeConfigList","metadata":{},"items":[{"metadata":{"name":"cfg","namespace":%q},"spec":{"nodeSelector":{},"defaults":{"a":"1"}}}]}`
	whole := func(version, kind, meta string) string {
		return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{%s},"data":{"a":"1"},"spec":{"defaults":{"a":"1"}}}`, version, kind, meta)
	}
	nodeConfigs := func(name string) func(*kube.Client) configresolve.Source {
		return func(c *kube.Client) configresolve.Source {
			if name == "" {
				return nodeConfigsOf(c)
			}
			return named(c, namespace, name)
		}
	}
	const ours = `"namespace":"kube-system"`
	for _, test := range []struct {
		source func(*kube.Client) configresolve.Source
		answer string
		says   string // "": it is what was asked for
	}{
		{mapOf, whole("v1", "ConfigMap", name+","+ours), ""},
		{mapOf, whole("v1", "Secret", name+","+ours), `"v1 Secret kube-system/cfg" instead of "v1 ConfigMap kube-system/cfg"`},
		{mapOf, whole("v1", "ConfigMap", `"name":"other",`+ours), `kube-system/other`},
		{mapOf, whole("v1", "ConfigMap", name+`,"namespace":"default"`), `default/cfg`},
		{mapOf, whole("v2", "ConfigMap", name+","+ours), `v2 ConfigMap`},
		{mapOf, whole("v1", "ConfigMap", ""), `"v1 ConfigMap /"`},
		{mapOf, `{"apiVersion":"v1","kind":"Status","status":"Success"}`, `Status`},
		{nodeConfigs("cfg"), whole("cilium.io/v2", "CiliumNodeConfig", name+","+ours), ""},
		{nodeConfigs("cfg"), whole("cilium.io/v2", "CiliumNodeConfig", `"name":"other",`+ours), `kube-system/other`},
		{nodeConfigs("cfg"), whole("v1", "ConfigMap", name+","+ours), `v1 ConfigMap`},
		{nodeConfigs(""), fmt.Sprintf(list, namespace), ""},
		{nodeConfigs(""), fmt.Sprintf(list, "default"), `default/cfg`},
		{nodeConfigs(""), whole("cilium.io/v2", "CiliumNodeConfig", name+","+ours), `"CiliumNodeConfig" instead of a list`},
		{nodeConfigs(""), `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{},"items":[{"metadata":{"name":"cfg","namespace":"kube-system"}}]}`, `v1 ConfigMap`},
		{nodeOf, strings.Replace(labelled, "other", "me", 1), ""},
		{nodeOf, labelled, `"/other" instead of "/me"`},
	} {
		client := clientOf(t, roundTripper(func(*http.Request) (*http.Response, error) { return respond(200, test.answer) }))
		config, err := configresolve.Resolve(t.Context(), configresolve.Optional(test.source(client)))
		if test.says == "" {
			require.NoError(t, err, test.answer)
			require.Equal(t, values{"a": "1"}, all(config), test.answer)
			continue
		}
		require.ErrorContains(t, err, test.says, test.answer)
		require.Empty(t, code.Of(err), "the cluster is there")
		require.ErrorContains(t, err, "read source "+test.source(client).Ref.String())
	}
}

func TestCFG4_AConfigMapWithoutDataIsReported(t *testing.T) {
	for _, object := range []fields{{"binaryData": fields{"blob": "AAAA"}}, {"data": fields{}}, {}} {
		object["apiVersion"], object["kind"], object["metadata"] = "v1", "ConfigMap", fields{"name": "cfg", "namespace": namespace}
		c := newCluster(t, &unstructured.Unstructured{Object: object})
		config := resolve(t, mapOf(c.Client))
		require.Equal(t, "empty config-map:kube-system/cfg: it has no data (binaryData is not read)", config.Explain().Findings[0].String())
	}
	c := newCluster(t, configMap("cfg", values{"a": "1"}))
	require.Empty(t, resolve(t, mapOf(c.Client)).Explain().Findings)
}

func TestCFG4_MissingNode(t *testing.T) {
	c := newCluster(t)
	_, err := configresolve.Resolve(t.Context(), nodeOf(c.Client))
	require.ErrorIs(t, err, configresolve.ErrMissing)
	require.ErrorContains(t, err, "Node me")
	require.Empty(t, all(resolve(t, configresolve.Optional(nodeOf(c.Client)))))

	c = newCluster(t, nodeConfig(v2, "a", `{"matchLabels":{"x":"y"}}`, values{"k": "v"}))
	configs := configresolve.Optional(nodeConfigsOf(c.Client))
	_, err = configresolve.Resolve(t.Context(), configs)
	require.ErrorContains(t, err, "ciliumnodeconfigs kube-system/a: its selector needs the labels of Node me, which does not exist")
	require.NotErrorIs(t, err, configresolve.ErrMissing, "needed, so not optional")
}

func TestCFG3_NodeLabelsThenAnnotations(t *testing.T) {
	c := newCluster(t, node("me",
		values{"config.cilium.io/label": "1", "config.cilium.io/both": "label", "other": "x", "config.cilium.ioX/k": "x", "config.cilium.io": "x"},
		values{"config.cilium.io/annotation": "1", "config.cilium.io/both": "annotation", "my.config.cilium.io/k": "x",
			"config.cilium.io/a/b": "bad", "config.cilium.io/": "bad"}))
	config := resolve(t, nodeOf(c.Client))
	require.Equal(t, values{"label": "1", "annotation": "1", "both": "annotation"}, all(config))
	entry := config.Explain("both").Keys[0]
	require.Equal(t, "annotations", entry.Part)
	require.Equal(t, "labels", entry.Overrode[0].Part)
	require.Equal(t, []string{"node:me"}, refs(config), "one entry for labels and annotations")
	require.Len(t, config.Explain().Findings, 2, "a/b and the empty key")

	c = newCluster(t, node("me", values{"agent.example.org/a": "1", "config.cilium.io/b": "2"}, nil))
	require.Equal(t, values{"a": "1"}, all(resolve(t, c.Client.Node("me", "agent.example.org"))))
}

func refs(c *configresolve.Config) []string {
	var names []string
	for _, r := range c.Explain().Sources {
		names = append(names, r.String())
	}
	return names
}

func TestCFG3_Selectors(t *testing.T) {
	labels := values{"zone": "a", "gpu": ""}
	for name, test := range map[string]struct {
		selector string
		selected bool
		reads    bool // whether the node is read
	}{
		"absent":      {"", false, false},
		"null":        {"null", false, false},
		"empty":       {"{}", true, false},
		"label":       {`{"matchLabels":{"zone":"a"}}`, true, true},
		"other label": {`{"matchLabels":{"zone":"b"}}`, false, true},
		"exists":      {`{"matchExpressions":[{"key":"gpu","operator":"Exists"}]}`, true, true},
		"both kinds":  {`{"matchLabels":{"zone":"a"},"matchExpressions":[{"key":"gpu","operator":"Exists"}]}`, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, node("me", labels, nil), nodeConfig(v2, "cr", test.selector, values{"k": "v"}))
			config := resolve(t, nodeConfigsOf(c.Client))
			_, selected := config.Lookup("k")
			require.Equal(t, test.selected, selected)
			want := []string{"list ciliumnodeconfigs"}
			if test.reads {
				want = append(want, "get nodes")
			}
			require.Equal(t, want, c.asked())
		})
	}
	for _, bad := range []string{`{"matchExpressions":[{"key":"a","operator":"Near"}]}`, `{"matchExpressions":[{"key":"a","operator":"In"}]}`, `"text"`, `{"matchLabels":5}`} {
		c := newCluster(t, node("me", labels, nil), nodeConfig(v2, "cr", bad, values{"k": "v"}))
		_, err := configresolve.Resolve(t.Context(), nodeConfigsOf(c.Client))
		require.ErrorContains(t, err, "kube-system/cr: spec.nodeSelector", bad)
	}
}

func TestCFG3_SeveralMatchInTheOrderOfTheirNames(t *testing.T) {
	c := newCluster(t,
		nodeConfig(v2, "b", "{}", values{"k": "b", "only-b": "1"}),
		nodeConfig(v2, "a-10", "{}", values{"k": "a-10"}),
		nodeConfig(v2, "a-9", "{}", values{"k": "a-9"}),
		nodeConfig(v2, "c-empty", "{}", values{}),
		nodeConfig(v2, "d-none", "{}", nil),
		nodeConfig(v2, "e-unselected", "", values{"k": "e"}))
	config := resolve(t, nodeConfigsOf(c.Client))
	require.Equal(t, values{"k": "b", "only-b": "1"}, all(config))
	require.Equal(t, []string{"cilium-node-config:kube-system/a-10", "cilium-node-config:kube-system/a-9", "cilium-node-config:kube-system/b"}, refs(config))
	require.Len(t, config.Explain().Findings, 2)
	for _, f := range config.Explain().Findings {
		require.Equal(t, "doubled", f.Problem)
	}
	require.JSONEq(t, `[{"kind":"cilium-node-config","namespace":"kube-system","name":"a-10"},
		{"kind":"cilium-node-config","namespace":"kube-system","name":"a-9"},{"kind":"cilium-node-config","namespace":"kube-system","name":"b"}]`,
		config.Data()["config-sources"])
}

func TestCFG3_NamedIgnoresItsSelector(t *testing.T) {
	c := newCluster(t, nodeConfig(v2, "mine", `{"matchLabels":{"no":"such"}}`, values{"k": "mine"}), nodeConfig(v2, "all", "{}", values{"k": "all"}))
	source := named(c.Client, namespace, "mine")
	require.Equal(t, values{"k": "mine"}, all(resolve(t, source)))
	require.Equal(t, []string{"get ciliumnodeconfigs"}, c.asked())

	require.Empty(t, all(resolve(t, named(c.Client, namespace, "none"))))
	require.Equal(t, []string{"get ciliumnodeconfigs"}, c.asked(), "v2 is served, so v2alpha1 is not asked")
}

func TestCFG3_OlderVersion(t *testing.T) {
	for _, name := range []string{"", "cr"} {
		c := newCluster(t, nodeConfig(v2alpha1, "cr", "{}", values{"k": "old"}))
		delete(c.objects, v2Path)
		source := named(c.Client, namespace, name)
		require.Equal(t, values{"k": "old"}, all(resolve(t, source)))
		require.Len(t, c.asked(), 2)

		if name == "" { // a list names no object that could be missing
			c.answer = func(req *http.Request) (*http.Response, error) {
				if req.URL.Path == v2Path {
					return respond(404, fmt.Sprintf(status, "NotFound", 404))
				}
				return nil, nil
			}
			require.Equal(t, values{"k": "old"}, all(resolve(t, source)))
		}
		delete(c.objects, olderPath)
		config := resolve(t, source)
		require.Empty(t, all(config), "the custom resource is not installed")
		require.Equal(t, "[]", config.Data()["config-sources"])
	}
}

func TestCFG3_OtherAgentsResource(t *testing.T) {
	gvr := schema.GroupVersionResource{Group: "agent.example.org", Version: "v1", Resource: "nodesettings"}
	object := nodeConfig(gvr, "cr", "{}", values{"k": "v"})
	object.SetKind("NodeSetting")
	c := newCluster(t)
	c.objects["/apis/agent.example.org/v1/namespaces/kube-system/nodesettings"] = map[string]fields{"cr": object.Object}
	config := resolve(t, c.Client.NodeConfigs(namespace, "", gvr))
	require.Equal(t, values{"k": "v"}, all(config))
	require.Equal(t, "k = \"v\" from nodesettings.agent.example.org:kube-system/cr\n", config.Explain().String())
	require.JSONEq(t, `[{"kind":"nodesettings.agent.example.org","namespace":"kube-system","name":"cr"}]`, config.Data()["config-sources"])
}

func TestCFG9_ThreeRequestsAndOneNodeRead(t *testing.T) {
	c := newCluster(t, configMap("cilium-config", values{"a": "1"}),
		nodeConfig(v2, "cr", `{"matchLabels":{"zone":"a"}}`, values{"a": "2"}),
		node("me", values{"zone": "a"}, values{"config.cilium.io/a": "3"}))
	r := configresolve.Resolver{Sources: []configresolve.Source{
		c.Client.ConfigMap(namespace, "cilium-config"),
		nodeConfigsOf(c.Client),
		nodeOf(c.Client),
	}}
	config, err := r.Resolve(t.Context())
	require.NoError(t, err)
	require.Equal(t, values{"a": "3"}, all(config))
	require.ElementsMatch(t, []string{"get configmaps", "list ciliumnodeconfigs", "get nodes"}, c.asked())
	_, err = r.Resolve(t.Context())
	require.NoError(t, err)
	require.Len(t, c.asked(), 3, "the next resolution reads again")

	r.Sources = append(r.Sources, nodeConfigsOf(c.Client))
	_, err = r.Resolve(t.Context())
	require.NoError(t, err)
	require.Len(t, c.asked(), 3, "a list that is asked for twice is read once")
}

// paged is a server of a list, by pages of at most so many objects.
type paged struct {
	objects, atMost int
	expires         int      // so often, between two pages
	large           [2]int   // objects of a mebibyte: from and to
	sizes           []string // of the pages, as asked for
}

func (p *paged) RoundTrip(req *http.Request) (*http.Response, error) {
	query, from, limit := req.URL.Query(), 0, 0
	_, _ = fmt.Sscan(query.Get("continue"), &from)
	_, _ = fmt.Sscan(query.Get("limit"), &limit)
	if p.sizes = append(p.sizes, query.Get("limit")); p.expires > 0 && from > 0 {
		p.expires--
		return respond(http.StatusGone, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
	}
	list := &unstructured.UnstructuredList{Object: fields{"apiVersion": "cilium.io/v2", "kind": "CiliumNodeConfigList"}}
	to := min(from+p.atMost, from+limit, p.objects)
	for i := from; i < to; i++ {
		object := nodeConfig(v2, fmt.Sprintf("n%03d", i), "{}", values{fmt.Sprint(i): "1"})
		if i >= p.large[0] && i < p.large[1] {
			object.SetAnnotations(values{"a": strings.Repeat("a", mebibyte)})
		}
		list.Items = append(list.Items, *object)
	}
	if to < p.objects {
		list.SetContinue(fmt.Sprint(to))
	}
	body, err := list.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return respond(http.StatusOK, string(body))
}

func TestCFG9_ListsPageByPage(t *testing.T) {
	for expires, requests := range map[int]int{0: 3, 1: 5} {
		p := &paged{objects: 5, atMost: 2, expires: expires}
		require.Len(t, all(resolve(t, nodeConfigsOf(clientOf(t, p)))), p.objects, "expires %d times", expires)
		require.Equal(t, slices.Repeat([]string{"250"}, requests), p.sizes)
	}
}

// A list that begins anew because it expired has the same limit of pages.
func TestSEC6_PagesThatExpireForEver(t *testing.T) {
	p := &paged{objects: 5, atMost: 2, expires: 1000}
	_, err := nodeConfigsOf(clientOf(t, p)).Read(t.Context())
	require.ErrorContains(t, err, "a list of more than 100 pages")
	require.Len(t, p.sizes, 100)
}

// A few large objects make a page of many too large; smaller pages have them all.
func TestSEC6_APageThatIsTooLargeIsReadAsSmallerOnes(t *testing.T) {
	p := &paged{objects: 600, atMost: 600, large: [2]int{300, 310}}
	require.Len(t, all(resolve(t, nodeConfigsOf(clientOf(t, p)))), p.objects)
	require.Equal(t, []string{"250", "250", "125", "62", "31", "62", "31", "15", "30"}, p.sizes[:9])
	require.Less(t, len(p.sizes), 40)
}

func TestCFG8_DeniedAccessSaysWhatToGrant(t *testing.T) {
	c := newCluster(t)
	c.answer = func(*http.Request) (*http.Response, error) {
		return respond(403, fmt.Sprintf(status, "Forbidden", 403))
	}
	for want, source := range map[string]configresolve.Source{
		`get configmaps kube-system/cfg: no ` +
			`(grant it by a Role in namespace kube-system with the rule {apiGroups: [""], resources: ["configmaps"], resourceNames: ["cfg"], verbs: ["get"]})`: mapOf(c.Client),
		`list ciliumnodeconfigs.cilium.io in namespace kube-system`:                                                                                 nodeConfigsOf(c.Client),
		`(grant it by a Role in namespace kube-system with the rule {apiGroups: ["cilium.io"], resources: ["ciliumnodeconfigs"], verbs: ["list"]})`: nodeConfigsOf(c.Client),
		`(grant it by a ClusterRole with the rule {apiGroups: [""], resources: ["nodes"], resourceNames: ["me"], verbs: ["get"]})`:                  nodeOf(c.Client),
		`resourceNames: ["one"], verbs: ["get"]`: named(c.Client, namespace, "one"),
	} {
		_, err := configresolve.Resolve(t.Context(), configresolve.Optional(source))
		require.ErrorContains(t, err, want)
		require.True(t, apierrors.IsForbidden(err))
		require.Equal(t, "kube.forbidden", code.Of(err))
		require.False(t, strings.Contains(err.Error(), "\n"))
		err = kube.Watch(t.Context(), configresolve.Resolver{Sources: []configresolve.Source{source}}, func(configresolve.Update) error { return errors.New("no news") })
		require.ErrorContains(t, err, "list and watch ")
		require.True(t, apierrors.IsForbidden(err))
	}
	err := c.EachNode(t.Context(), "", nil)
	require.ErrorContains(t, err, `list nodes: no (grant it by a ClusterRole with the rule {apiGroups: [""], resources: ["nodes"], verbs: ["list"]})`)
	c.answer = func(*http.Request) (*http.Response, error) {
		return respond(401, fmt.Sprintf(status, "Unauthorized", 401))
	}
	_, err = configresolve.Resolve(t.Context(), mapOf(c.Client))
	require.True(t, apierrors.IsUnauthorized(err))
	require.ErrorContains(t, err, "does not accept the credentials")
	require.Equal(t, "kube.unauthorized", code.Of(err))
}

func TestClientSource(t *testing.T) {
	c := newCluster(t, configMap("cilium-config", values{"a": "1"}), nodeConfig(v2, "cr", "{}", values{"a": "2"}),
		node("that", nil, values{"config.cilium.io/a": "3"})).Client
	for text, want := range map[string]configresolve.Source{
		"config-map":                   c.ConfigMap(namespace, "cilium-config"),
		"cilium-node-config":           nodeConfigsOf(c),
		"cilium-node-config:other/one": named(c, "other", "one"),
		"node:that":                    c.Node("that", kube.Cilium().Prefix),
	} {
		specs, err := configresolve.ParseSpecs([]string{text}, configresolve.Ref{Namespace: namespace, Name: kube.Cilium().ConfigMap}, "me")
		require.NoError(t, err)
		got, err := c.Source(specs[0], kube.Cilium(), "me")
		require.NoError(t, err)
		layers, err := got.Read(t.Context())
		require.NoError(t, err)
		wanted, err := want.Read(t.Context())
		require.NoError(t, err)
		require.Equal(t, wanted, layers)
		require.Equal(t, specs[0].String(), got.Ref.String())
	}
	_, err := c.Source(configresolve.Ref{Kind: "dir", Name: "/x"}, kube.Cilium(), "me")
	require.ErrorContains(t, err, "does not live in a cluster")
}

func TestSourcesWithoutWhatTheyNeed(t *testing.T) {
	c := newCluster(t, nodeConfig(v2, "cr", `{"matchLabels":{"a":"b"}}`, values{"k": "v"})).Client
	versions := kube.Cilium().NodeConfigs
	for _, test := range []struct {
		source configresolve.Source
		says   string
	}{
		{(*kube.Client)(nil).ConfigMap("a", "b"), "no client given"}, {c.ConfigMap("", "b"), "needs a namespace and a name"},
		{c.ConfigMap("a", ""), "needs a namespace and a name"}, {(*kube.Client)(nil).NodeConfigs("a", "", versions...), "no client given"},
		{c.NodeConfigs("", "", versions...), "needs a namespace"}, {c.NodeConfigs(namespace, "", versions...), "no node name given"},
		{c.NodeConfigs("a", ""), "read source node-config:a: needs the group, versions and plural of a custom resource"},
		{c.NodeConfigs("a", "", schema.GroupVersionResource{Group: "a", Resource: "b"}), "needs the group, versions and plural"},
		{c.NodeConfigs("a", "", schema.GroupVersionResource{Version: "v1", Resource: "b"}), "needs the group, versions and plural"},
		{c.NodeConfigs("a", "", schema.GroupVersionResource{Group: "a", Version: "v1"}), "needs the group, versions and plural"},
		{c.NodeConfigs("a", "", schema.GroupVersionResource{Group: "a", Version: "v1", Resource: "b"}, schema.GroupVersionResource{Group: "a", Version: "v2", Resource: "c"}), "needs the group, versions and plural"},
		{(*kube.Client)(nil).Node("me", "p"), "no client given"}, {c.Node("", "p"), "no node name given"},
		{c.Node("me", ""), "read source node:me: needs the prefix of the keys of its labels and annotations"},
	} {
		_, err := configresolve.Resolve(t.Context(), test.source)
		require.ErrorContains(t, err, test.says)
	}
}
