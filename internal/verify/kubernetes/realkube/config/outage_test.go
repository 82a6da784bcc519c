// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package config_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/kube"
)

// outage is a way for the control plane to disappear in the middle of a resolution, and to
// return.
type outage struct {
	begin func()
	end   func(*testing.T)
}

var (
	killed    = outage{begin: func() { server.KillAPIServer() }, end: startAPIServer}
	stopped   = outage{begin: func() { server.StopAPIServer() }, end: startAPIServer}
	allKilled = outage{
		begin: func() { server.KillEtcd(); server.KillAPIServer() },
		end: func(t *testing.T) {
			require.NoError(t, server.StartEtcd())
			startAPIServer(t)
		},
	}
)

func startAPIServer(t *testing.T) { require.NoError(t, server.StartAPIServer(t.Context())) }

// breaking begins the outage at a request of the client: either before the first request for
// resource is sent, or after the first bytes of its answer. back is called after the client's
// third failure.
func breaking(resource string, inBody bool, begin func(), back func()) func(http.RoundTripper) http.RoundTripper {
	var begun atomic.Bool
	var failures atomic.Int64
	failed := func(err error) {
		if err != nil && err != io.EOF && begun.Load() && failures.Add(1) == 3 {
			back()
		}
	}
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			mine := strings.Contains(r.URL.Path, resource) && begun.CompareAndSwap(false, true)
			if mine && !inBody {
				begin()
			}
			res, err := next.RoundTrip(r)
			if err == nil && mine && inBody {
				res.Body = &breakingBody{ReadCloser: res.Body, begin: begin, failed: failed}
			}
			if err == nil && res.StatusCode >= 500 {
				failed(errors.New(res.Status))
			}
			failed(err)
			return res, err
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// breakingBody begins the outage after the first piece.
type breakingBody struct {
	io.ReadCloser
	begin  func()
	failed func(error)
}

func (b *breakingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), 512)])
	if b.begin != nil {
		b.begin()
		b.begin = nil
	}
	b.failed(err)
	return n, err
}

func TestCFG8_OutageInTheMiddle(t *testing.T) {
	const name = "outage"
	createNamespace(t, name)
	createConfigMap(t, name, "cilium-config", values{"a": "cm"})
	for i := range 600 { // two pages, each larger than the connections' buffers
		createNodeConfig(t, name, nodeConfig{manyName(i), `{"matchLabels":{"zone":"a"}}`, values{"b": "cr", "last": fmt.Sprint(i)}})
	}
	createNode(t, name, values{"zone": "a"}, values{"config.cilium.io/c": "n"})
	for _, test := range []struct {
		outage   outage
		name     string
		resource string
		inBody   bool
	}{
		{killed, "killed", "configmaps", false},
		{killed, "killed", "ciliumnodeconfigs", false},
		{killed, "killed in the answer", "ciliumnodeconfigs", true},
		{killed, "killed", "nodes", false},
		{stopped, "stopped", "nodes", false},
		{allKilled, "etcd killed too", "ciliumnodeconfigs", false},
	} {
		t.Run(test.name+" at "+test.resource, func(t *testing.T) {
			back := make(chan struct{})
			client, _ := connect(t, kube.Connection{Wrap: breaking(test.resource, test.inBody, test.outage.begin, func() { close(back) })})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			done := make(chan error, 1)
			var config *configresolve.Config
			list := sources(t, client, name, name, three...)
			go func() {
				var err error
				config, err = configresolve.Resolve(ctx, list...)
				done <- err
			}()
			select {
			case <-back:
			case err := <-done:
				t.Errorf("it has not met the outage: %v", err)
			}
			test.outage.end(t)
			require.NoError(t, <-done)
			require.Equal(t, values{"a": "cm", "b": "cr", "last": "599", "c": "n"}, maps.Collect(config.All()))
		})
	}
}
