// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package config_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/kube"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

// TestCFG8_DeniedAccessNamesTheRule denies each right in turn, then grants exactly the rule
// that the error prints.
func TestCFG8_DeniedAccessNamesTheRule(t *testing.T) {
	const name = "denied"
	createNamespace(t, name)
	createConfigMap(t, name, "cilium-config", values{"a": "cm"})
	createNodeConfig(t, name, nodeConfig{"x", `{"matchLabels":{"zone":"a"}}`, values{"b": "cr"}})
	createNode(t, name, values{"zone": "a"}, nil)
	const account = `User "system:serviceaccount:kube-system:nobody" cannot `
	steps := []struct {
		denied, says, rule string
		namespaced         bool
	}{
		{"get v1 configmaps 403", `read source config-map:denied/cilium-config: get configmaps denied/cilium-config: configmaps "cilium-config" is forbidden: ` + account + `get resource "configmaps" in API group "" in the namespace "denied" (grant it by a Role in namespace denied with the rule `,
			`{apiGroups: [""], resources: ["configmaps"], resourceNames: ["cilium-config"], verbs: ["get"]}`, true},
		{"list v2 ciliumnodeconfigs 403", `read source cilium-node-config:denied: list ciliumnodeconfigs.cilium.io in namespace denied: ciliumnodeconfigs.cilium.io is forbidden: ` + account + `list resource "ciliumnodeconfigs" in API group "cilium.io" in the namespace "denied" (grant it by a Role in namespace denied with the rule `,
			`{apiGroups: ["cilium.io"], resources: ["ciliumnodeconfigs"], verbs: ["list"]}`, true},
		{"get v1 nodes 403", `read source cilium-node-config:denied: ciliumnodeconfigs denied/x: its selector needs the labels of the node: get nodes denied: nodes "denied" is forbidden: ` + account + `get resource "nodes" in API group "" at the cluster scope (grant it by a ClusterRole with the rule `,
			`{apiGroups: [""], resources: ["nodes"], resourceNames: ["denied"], verbs: ["get"]}`, false},
	}
	for i, step := range steps {
		asked := map[string]int{}
		client, userAgent := connect(t, kube.Connection{Kubeconfig: kubeconfig(t, server, nobody)})
		list := sources(t, client, name, name, three...)
		_, err := configresolve.Resolve(t.Context(), list...)
		require.EqualError(t, err, step.says+step.rule+")")
		for _, request := range audited(t, userAgent) {
			asked[request]++
			require.LessOrEqual(t, asked[request], 2, request)
		}
		require.Equal(t, 2, asked[step.denied], "the denied request is retried once the server reports ready")
		grant(t, name, i, step.rule, step.namespaced)
		eventually(t, func(ctx context.Context) error { // until the authorizer has seen the rule
			if _, err := configresolve.Resolve(ctx, list...); err != nil && err.Error() == step.says+step.rule+")" {
				return err
			}
			return nil
		})
	}
	client, _ := connect(t, kube.Connection{Kubeconfig: kubeconfig(t, server, nobody)})
	config, err := configresolve.Resolve(t.Context(), sources(t, client, name, name, three...)...)
	require.NoError(t, err)
	require.Equal(t, values{"a": "cm", "b": "cr"}, maps.Collect(config.All()))
}

// grant gives the account nobody the rule printed in an error.
func grant(t *testing.T, namespace string, i int, rule string, namespaced bool) {
	t.Helper()
	role, kind, name := "/apis/rbac.authorization.k8s.io/v1/", "ClusterRole", fmt.Sprintf("grant-%d", i)
	if namespaced {
		role, kind = role+"namespaces/"+namespace+"/", "Role"
	}
	plural := strings.ToLower(kind)
	require.NoError(t, server.Admin().ApplyYAML(t.Context(), role+plural+"s/"+name, fmt.Appendf(nil, `apiVersion: rbac.authorization.k8s.io/v1
kind: %s
metadata: {name: %s}
rules: [%s]
`, kind, name, rule)))
	require.NoError(t, server.Admin().ApplyYAML(t.Context(), role+plural+"bindings/"+name, fmt.Appendf(nil, `apiVersion: rbac.authorization.k8s.io/v1
kind: %sBinding
metadata: {name: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: %s}
subjects: [{kind: ServiceAccount, namespace: kube-system, name: nobody}]
`, kind, name, kind, name)))
}

func TestCFG8_UnknownTokenIsFinal(t *testing.T) {
	client, _ := connect(t, kube.Connection{Kubeconfig: kubeconfig(t, server, realkube.User{Name: "stranger"})})
	_, err := configresolve.Resolve(t.Context(), kube.ConfigMap{Client: client, Namespace: "default", Name: "x"})
	require.ErrorContains(t, err, "get configmaps default/x: Unauthorized (the API server does not accept the credentials")
}

// TestCFG8_CertificateErrors meets servers that a client must not trust.
func TestCFG8_CertificateErrors(t *testing.T) {
	ours, err := realkube.NewAuthority("ours")
	require.NoError(t, err)
	theirs, err := realkube.NewAuthority("theirs")
	require.NoError(t, err)
	for name, test := range map[string]struct {
		signer *realkube.Authority
		until  time.Time
		host   string
		says   string
	}{
		"another authority": {theirs, time.Now().Add(time.Hour), "127.0.0.1", "certificate signed by unknown authority"},
		"another host":      {ours, time.Now().Add(time.Hour), "10.0.0.1", "certificate is valid for 10.0.0.1, not 127.0.0.1"},
		"expired":           {ours, time.Now().Add(-time.Hour), "127.0.0.1", "certificate has expired"},
	} {
		t.Run(name, func(t *testing.T) {
			cert, key, err := test.signer.Server(test.until, test.host)
			require.NoError(t, err)
			impostor := serveTLS(t, cert, key)
			path, err := realkube.WriteKubeconfig(t.TempDir(), impostor, ours.PEM, "secret")
			require.NoError(t, err)
			var attempts atomic.Int64
			client, _ := connect(t, kube.Connection{Kubeconfig: path, Wrap: counting(&attempts)})
			_, err = configresolve.Resolve(t.Context(), kube.ConfigMap{Client: client, Namespace: "default", Name: "x"})
			require.ErrorContains(t, err, "get configmaps default/x: ")
			require.ErrorContains(t, err, test.says)
			require.EqualValues(t, 1, attempts.Load(), "time does not change it")
		})
	}
}

// serveTLS answers every request that trusts the certificate with 200.
func serveTLS(t *testing.T, certPEM, keyPEM []byte) string {
	t.Helper()
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	require.NoError(t, err)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the client has sent its token") }))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// counting counts attempts.
func counting(n *atomic.Int64) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			n.Add(1)
			return next.RoundTrip(r)
		})
	}
}

// TestCFG8_SeveralServers has a dead one and an untrusted one before the real one.
func TestCFG8_SeveralServers(t *testing.T) {
	const name = "several"
	createNamespace(t, name)
	createConfigMap(t, name, "cilium-config", values{"a": "1"})
	createNode(t, name, nil, nil)
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, dead.Close())
	other, err := realkube.NewAuthority("other")
	require.NoError(t, err)
	cert, key, err := other.Server(time.Now().Add(time.Hour), "127.0.0.1")
	require.NoError(t, err)

	var attempts atomic.Int64
	client, userAgent := connect(t, kube.Connection{Kubeconfig: kubeconfig(t, server, agent), Wrap: counting(&attempts),
		Servers: []string{"https://" + dead.Addr().String(), serveTLS(t, cert, key), server.URL}})
	config, err := configresolve.Resolve(t.Context(), sources(t, client, name, name, three...)...)
	require.NoError(t, err)
	require.Equal(t, values{"a": "1"}, maps.Collect(config.All()))
	require.Len(t, audited(t, userAgent), 3)
	require.EqualValues(t, 5, attempts.Load(), "from then on the server that answered comes first")
}
