// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube_test

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/kube"
)

// answerAny answers a request for any of threeSources.
func answerAny(req *http.Request) (*http.Response, error) {
	switch path := req.URL.Path; {
	case strings.Contains(path, "/nodes/"):
		return respond(200, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"me","labels":{"config.cilium.io/node":"1"}}}`)
	case strings.Contains(path, "/ciliumnodeconfigs"):
		return respond(200, `{"apiVersion":"cilium.io/v2","kind":"CiliumNodeConfigList","metadata":{},"items":[`+
			`{"apiVersion":"cilium.io/v2","kind":"CiliumNodeConfig","metadata":{"name":"x","namespace":"kube-system"},"spec":{"nodeSelector":{},"defaults":{"cr":"1"}}}]}`)
	}
	return found()
}

func threeSources(client *kube.Client) []configresolve.Source {
	return []configresolve.Source{
		kube.ConfigMap{Client: client, Namespace: namespace, Name: "cfg"},
		kube.NodeConfigs{Client: client, Namespace: namespace, NodeName: "me"},
		kube.Node{Client: client, Name: "me"},
	}
}

var fromAll = values{"a": "1", "cr": "1", "node": "1"}

// TestCFG9_OneConnectionForRequestsThatGoTogether has a server that answers
// none of three requests before it has them all.
func TestCFG9_OneConnectionForRequestsThatGoTogether(t *testing.T) {
	var connections atomic.Int64
	var arrived sync.WaitGroup
	arrived.Add(3)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived.Done()
		arrived.Wait()
		response, err := answerAny(r)
		if err == nil {
			w.Header().Set("Content-Type", "application/json")
			_, err = io.Copy(w, response.Body)
		}
		if err != nil {
			t.Error(err)
		}
	}))
	server.EnableHTTP2 = true
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.StartTLS()
	defer server.Close()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]
contexts: [{name: x, context: {cluster: c}}]
current-context: x
`, server.URL, base64.StdEncoding.EncodeToString(ca)), 0o600))
	client, err := kube.Connection{Kubeconfig: path}.Client()
	require.NoError(t, err)
	require.Equal(t, fromAll, all(resolve(t, threeSources(client)...)))
	require.EqualValues(t, 1, connections.Load())
}

// network is what a client meets. It counts the requests, and how many of them
// there are at once.
type network struct {
	answer func(n int, req *http.Request) (*http.Response, error)

	mu            sync.Mutex
	begun, inside int
	most          []int // that were inside with the request of that number
}

func (n *network) RoundTrip(req *http.Request) (*http.Response, error) {
	n.mu.Lock()
	n.begun++
	n.inside++
	n.most = append(n.most, n.inside)
	number := n.begun
	n.mu.Unlock()
	time.Sleep(10 * time.Millisecond)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.inside--
	return n.answer(number, req)
}

func (n *network) requests() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.begun
}

func (n *network) client(t *testing.T) *kube.Client {
	t.Helper()
	client, err := kube.Connection{Servers: []string{"http://a"}, Wrap: func(http.RoundTripper) http.RoundTripper { return n }}.Client()
	require.NoError(t, err)
	return client
}

// In an outage three sources ask as often as one: one at a time, with pauses of
// half a minute on average. All are there as soon as one is answered.
func TestCFG8_SourcesThatWaitTogetherAskInTurn(t *testing.T) {
	for name, before := range map[string]int{"at the start": 0, "in the middle": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var recovered time.Time
				n := &network{answer: func(number int, req *http.Request) (*http.Response, error) {
					switch {
					case number <= before:
					case time.Since(start) < 10*time.Minute:
						return nil, errors.New("connection refused")
					case recovered.IsZero():
						recovered = time.Now()
					}
					return answerAny(req)
				}}
				require.Equal(t, fromAll, all(resolve(t, threeSources(n.client(t))...)))
				require.Less(t, time.Since(recovered), time.Second, "the others need no pause any more")
				require.Greater(t, n.requests(), 10)
				require.Less(t, n.requests(), 45)
				for number, inside := range n.most[before+2 : n.requests()-2] {
					require.Equal(t, 1, inside, "request %d", number)
				}
			})
		})
	}
}

// What fails always, though the server is well, keeps nobody else from asking.
func TestCFG8_OneFailureDoesNotStarveTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{answer: func(_ int, req *http.Request) (*http.Response, error) {
			if strings.Contains(req.URL.Path, "/ciliumnodeconfigs") {
				return respond(500, "conversion webhook")
			}
			return answerAny(req)
		}}
		client := n.client(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		failing := make(chan error, 1)
		go func() {
			_, err := configresolve.Resolve(ctx, threeSources(client)[1])
			failing <- err
		}()
		time.Sleep(10 * time.Minute)
		require.Greater(t, n.requests(), 10)
		start := time.Now()
		require.Equal(t, values{"a": "1", "node": "1"}, all(resolve(t, threeSources(client)[0], threeSources(client)[2])))
		require.Less(t, time.Since(start), 2*time.Minute)
		require.ErrorIs(t, <-failing, context.DeadlineExceeded)
	})
}

func TestCFG8_EachHonoursItsOwnRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := map[string]time.Time{}
		n := &network{answer: func(_ int, req *http.Request) (*http.Response, error) {
			if at, ok := refused[req.URL.Path]; ok {
				if time.Since(at) < 20*time.Second {
					t.Errorf("%s is asked for again after %s", req.URL.Path, time.Since(at))
				}
				return answerAny(req)
			}
			refused[req.URL.Path] = time.Now()
			return respond(429, "", "Retry-After", "20")
		}}
		start := time.Now()
		require.Equal(t, fromAll, all(resolve(t, threeSources(n.client(t))...)))
		require.Equal(t, 6, n.requests())
		require.Less(t, time.Since(start), 90*time.Second)
	})
}

// The first source's error says what is wrong, also where another one asked.
func TestCFG8_WhoeverAsksTheReasonIsNamed(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			n := &network{answer: func(int, *http.Request) (*http.Response, error) { return nil, errors.New("no route to host") }}
			ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Minute, errors.New("boot takes too long"))
			defer cancel()
			_, err := configresolve.Resolve(ctx, threeSources(n.client(t))...)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "boot takes too long")
			require.ErrorContains(t, err, "no route to host")
			require.ErrorContains(t, err, "config-map:kube-system/cfg")
		})
	}
}
