// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package config_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/kube"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

type (
	values = map[string]string
	fields = map[string]any
)

// server is shared by the tests; each test has its own namespaces and nodes.
var server *realkube.Server

// agent may read the objects that the sources read, watcher may also watch them, and neither
// may do more; nobody has no rights; deployed has the rights that a test grants it.
var (
	agent   = realkube.ServiceAccount("kube-system", "agent")
	watcher = realkube.ServiceAccount("kube-system", "watcher")
	nobody  = realkube.ServiceAccount("kube-system", "nobody")

	deployed = realkube.ServiceAccount("kube-system", "deployed")
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	server, err = start(context.Background(), realkube.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer server.Close()
	return m.Run()
}

// start starts a server with node configs and with agent's rights.
func start(ctx context.Context, o realkube.Options) (*realkube.Server, error) {
	o.Users, o.Log = append(o.Users, agent, watcher, nobody, deployed), os.Stderr
	s, err := realkube.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	err = s.Admin().ApplyYAML(ctx, crdPath, realkube.NodeConfigs(v2, v2alpha1))
	roles, readErr := realkube.Manifest("testdata/roles.yaml")
	for _, d := range roles {
		err = errors.Join(err, s.Admin().ApplyYAML(ctx, d.Path, []byte(d.Text)))
	}
	if err = errors.Join(err, readErr); err != nil {
		s.Close()
		return nil, err
	}
	for _, version := range []string{v2, v2alpha1} {
		if err := s.Admin().WaitServed(ctx, nodeConfigsPath(version, "default")); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

var clients atomic.Int64

// connect returns a client for agent, and the user agent under which the audit log lists its
// requests.
func connect(t testing.TB, c kube.Connection) (*kube.Client, string) {
	t.Helper()
	if c.Kubeconfig == "" {
		c.Kubeconfig = kubeconfig(t, server, agent)
	}
	c.Spread = time.Second // an outage here lasts a few seconds
	c.UserAgent = fmt.Sprintf("test-%d", clients.Add(1))
	client, err := c.Client()
	require.NoError(t, err)
	return client, c.UserAgent
}

func kubeconfig(t testing.TB, s *realkube.Server, u realkube.User) string {
	t.Helper()
	path, err := s.Kubeconfig(t.TempDir(), u, "")
	require.NoError(t, err)
	return path
}

// sources parses source strings.
func sources(t testing.TB, client *kube.Client, namespace, node string, specs ...string) []configresolve.Source {
	t.Helper()
	parsed, err := configresolve.ParseSpecs(specs, configresolve.Ref{Namespace: namespace, Name: kube.Cilium().ConfigMap}, node)
	require.NoError(t, err)
	var list []configresolve.Source
	for _, spec := range parsed {
		source, err := client.Source(spec, kube.Cilium(), node)
		require.NoError(t, err)
		list = append(list, source)
	}
	return list
}

// audited lists a client's requests in order, abbreviated.
func audited(t testing.TB, userAgent string) []string {
	t.Helper()
	events, err := server.Audit(0, userAgent)
	require.NoError(t, err)
	var list []string
	for _, e := range events {
		list = append(list, e.String())
	}
	return list
}

// The objects of a test.

func createNamespace(t testing.TB, name string) {
	t.Helper()
	create(t, "/api/v1/namespaces", fields{"metadata": fields{"name": name}})
}

func create(t testing.TB, path string, object fields) {
	t.Helper()
	require.NoError(t, server.Admin().Create(t.Context(), path, object))
}

func createConfigMap(t testing.TB, namespace, name string, data values) {
	t.Helper()
	create(t, "/api/v1/namespaces/"+namespace+"/configmaps", fields{
		"metadata": fields{"name": name}, "data": data, "binaryData": fields{"blob": "AAAA"}})
}

func createNode(t testing.TB, name string, labels, annotations values) {
	t.Helper()
	create(t, "/api/v1/nodes", fields{"metadata": fields{"name": name, "labels": labels, "annotations": annotations}})
}

// nodeConfig has a selector as JSON, or none if that is empty.
type nodeConfig struct {
	Name, Selector string
	Defaults       values
}

func (c nodeConfig) object() fields {
	spec := fields{}
	if c.Selector != "" {
		spec["nodeSelector"] = json.RawMessage(c.Selector)
	}
	if c.Defaults != nil {
		spec["defaults"] = c.Defaults
	}
	return fields{"apiVersion": "cilium.io/v2", "kind": "CiliumNodeConfig", "metadata": fields{"name": c.Name}, "spec": spec}
}

func createNodeConfig(t testing.TB, namespace string, c nodeConfig) {
	t.Helper()
	create(t, nodeConfigsPath(v2, namespace), c.object())
}

// slug makes an object's name from a test's name.
func slug(name string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name)), "-")
}
