// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstorm

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/kube"
)

// traffic counts the nodes' requests per second.
type traffic struct {
	start    time.Time
	sent     [3600]atomic.Int64 // attempts
	answered [3600]atomic.Int64 // attempts that got an answer
	rejected atomic.Int64       // those answered with 429
}

func (t *traffic) second() int { return min(int(time.Since(t.start)/time.Second), len(t.sent)-1) }

// transport returns a new connection for one node.
func (c *cluster) transport(t *traffic) (http.RoundTripper, func()) {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.server.CAPEM)
	own := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 30 * time.Second}
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		t.sent[t.second()].Add(1)
		response, err := own.RoundTrip(r)
		if err == nil {
			t.answered[t.second()].Add(1)
			if response.StatusCode == http.StatusTooManyRequests {
				t.rejected.Add(1)
			}
		}
		return response, err
	}), own.CloseIdleConnections
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// resolve acts as a node that resolves its configuration from three sources.
func (c *cluster) resolve(ctx context.Context, i int, t *traffic) error {
	transport, done := c.transport(t)
	defer done()
	client, err := kube.Connection{Kubeconfig: c.kubeconfig, Spread: c.spread, Wrap: func(http.RoundTripper) http.RoundTripper { return transport }}.Client()
	if err != nil {
		return err
	}
	config, err := configresolve.Resolve(ctx,
		kube.ConfigMap{Client: client, Namespace: namespace, Name: "cilium-config"},
		kube.NodeConfigs{Client: client, Namespace: namespace, NodeName: nodeName(i), Resource: kube.Cilium().NodeConfigs},
		kube.Node{Client: client, Name: nodeName(i), Prefix: kube.Cilium().Prefix})
	if err != nil {
		return err
	}
	if got, _ := config.Lookup("node"); got != fmt.Sprint(i%nodeObjects) {
		return fmt.Errorf("node %d has resolved the configuration of node %q", i, got)
	}
	return nil
}

// asCilium acts as a node that sends the requests of build-config in Cilium 1.18.3 and reads
// the answers. Like client-go, it retries when the server asks for it.
func (c *cluster) asCilium(ctx context.Context, i int, t *traffic) error {
	transport, done := c.transport(t)
	defer done()
	node := "/api/v1/nodes/" + nodeName(i)
	for _, path := range []string{
		"/api/v1/namespaces/kube-system", "/version", "/api/v1/namespaces/" + namespace + "/configmaps/cilium-config",
		configsPath("v2"), node, configsPath("v2alpha1"), node, node,
	} {
		if err := c.get(ctx, transport, path); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) get(ctx context.Context, transport http.RoundTripper, path string) error {
	const attempts = 11 // client-go's
	for range attempts {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server.URL+path, nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+agent.Token())
		req.Header.Set("Accept", "application/vnd.kubernetes.protobuf,application/json")
		response, err := transport.RoundTrip(req)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		seconds, told := strconv.Atoi(response.Header.Get("Retry-After"))
		switch {
		case err != nil || response.StatusCode == http.StatusOK:
			return err
		case told != nil:
			return fmt.Errorf("GET %s: %s", path, response.Status)
		}
		select {
		case <-time.After(time.Duration(seconds) * time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.New("told to come back once too often")
}
