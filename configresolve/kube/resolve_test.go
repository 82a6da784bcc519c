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
	"github.com/slipway-dev/slipway/internal/code"
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
	return []configresolve.Source{mapOf(client), nodeConfigsOf(client), nodeOf(client)}
}

var fromAll = values{"a": "1", "cr": "1", "node": "1"}

// TestCFG9_OneConnectionForRequestsThatGoTogether uses a server that answers neither of the
// other two requests until it has both.
func TestCFG9_OneConnectionForRequestsThatGoTogether(t *testing.T) {
	var connections atomic.Int64
	var arrived sync.WaitGroup
	arrived.Add(2)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "/configmaps/") {
			arrived.Done()
			arrived.Wait()
		}
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
	client := trusting(t, server)
	require.Equal(t, fromAll, all(resolve(t, threeSources(client)...)))
	require.EqualValues(t, 1, connections.Load())
}

// network is the network between client and servers. It counts the requests.
type network struct {
	answer func(n int, req *http.Request) (*http.Response, error)

	mu    sync.Mutex
	begun int
}

func (n *network) RoundTrip(req *http.Request) (*http.Response, error) {
	n.mu.Lock()
	n.begun++
	number := n.begun
	n.mu.Unlock()
	time.Sleep(10 * time.Millisecond)
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.answer(number, req)
}

func (n *network) requests() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.begun
}

func (n *network) client(t *testing.T) *kube.Client {
	t.Helper()
	return clientOf(t, n)
}

// A request that always fails, on a healthy server, delays no other, and is retried no more
// often because others are answered.
func TestCFG8_OneFailureDelaysNoOtherRead(t *testing.T) {
	for _, wait := range []string{"0", "60"} {
		synctest.Test(t, func(t *testing.T) {
			bad := 0
			n := &network{answer: func(_ int, req *http.Request) (*http.Response, error) {
				if strings.Contains(req.URL.Path, "/bad-") {
					bad++
					return respond(500, "webhook", "Retry-After", wait)
				}
				return answerAny(req)
			}}
			client := n.client(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			var failing sync.WaitGroup
			for i := range 5 {
				failing.Go(func() {
					_, err := client.ConfigMap(namespace, fmt.Sprint("bad-", i)).Read(ctx)
					require.ErrorIs(t, err, context.DeadlineExceeded)
				})
			}
			time.Sleep(10 * time.Minute)
			start := time.Now()
			for range 100 {
				require.Equal(t, fromAll, all(resolve(t, threeSources(client)...)))
				time.Sleep(5 * time.Second)
			}
			require.Less(t, time.Since(start), 100*5100*time.Millisecond)
			failing.Wait()
			require.Greater(t, bad, 5*25, "in an hour")
			require.Less(t, bad, 5*180, "a pause is half a minute, on average")
		})
	}
}

// Each request honours its own Retry-After to the second, whatever happens to others.
func TestCFG8_EachHonoursItsOwnRetryAfter(t *testing.T) {
	for _, code := range []int{429, 500, 503, 504} {
		for _, others := range []string{"20", ""} {
			synctest.Test(t, func(t *testing.T) {
				refused := map[string]time.Time{}
				n := &network{answer: func(_ int, req *http.Request) (*http.Response, error) {
					path, wait := req.URL.Path, "20"
					if !strings.Contains(path, "/nodes/") {
						wait = others
					}
					if at, ok := refused[path]; ok {
						if wait != "" && time.Since(at) < 20*time.Second {
							t.Errorf("%d: %s is asked for again after %s", code, path, time.Since(at))
						}
						return answerAny(req)
					}
					refused[path] = time.Now()
					return respond(code, "", "Retry-After", wait)
				}}
				start := time.Now()
				require.Equal(t, fromAll, all(resolve(t, threeSources(n.client(t))...)))
				require.Equal(t, 6, n.requests())
				require.Less(t, time.Since(start), 2*22*time.Second, "after the first, they wait at the same time")
			})
		}
	}
}

// The first source's error gives the cause, even if another source made the request; if only
// its own request failed, it gives that cause.
func TestCFG8_TheReasonIsNamed(t *testing.T) {
	refused := errors.New("no route to host")
	for name, answer := range map[string]func(n int, req *http.Request) (*http.Response, error){
		"no route to host": func(int, *http.Request) (*http.Response, error) { return nil, refused },
		"500 Internal Server Error": func(_ int, req *http.Request) (*http.Response, error) {
			if strings.Contains(req.URL.Path, "/configmaps/") {
				return respond(500, "it cannot be decrypted")
			}
			return respond(429, "", "Retry-After", "60")
		},
		"attempts, the last: no route to host": func(n int, req *http.Request) (*http.Response, error) {
			if n <= 3 {
				return nil, refused
			}
			<-req.Context().Done()
			return nil, req.Context().Err()
		},
	} {
		for range 20 {
			synctest.Test(t, func(t *testing.T) {
				var n network
				client := clientOf(t, roundTripper(func(req *http.Request) (*http.Response, error) {
					n.mu.Lock()
					n.begun++
					number := n.begun
					n.mu.Unlock()
					return answer(number, req)
				}))
				ctx, cancel := context.WithTimeoutCause(t.Context(), 25*time.Second, errors.New("boot takes too long"))
				defer cancel()
				_, err := configresolve.Resolve(ctx, threeSources(client)...)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, "config-map:kube-system/cfg")
				require.ErrorContains(t, err, "boot takes too long")
				require.Equal(t, "kube.unavailable", code.Of(err))
				require.ErrorContains(t, err, name)
			})
		}
	}
}

// Readiness counts per server: one that is ready does not vouch for another that denies access.
func TestCFG8_ReadyIsEachServerForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		source, _ := connect(t, func(n int, req *http.Request) (*http.Response, error) {
			started := time.Since(start) > 5*time.Minute
			switch {
			case req.URL.Host == "a" && ready(req):
				return respond(200, "ok")
			case req.URL.Host == "a" && n > 2: // gone, before it denies access again
				return nil, errors.New("connection refused")
			case started && ready(req):
				return respond(200, "ok")
			case started:
				return found()
			case ready(req):
				return respond(500, "[-]informer-sync failed")
			}
			return respond(403, fmt.Sprintf(status, "Forbidden", 403))
		}, "http://a", "http://b")
		_, err := source.Read(t.Context())
		require.NoError(t, err)
	})
}

// trusting returns a client of a server with TLS.
func trusting(t *testing.T, server *httptest.Server) *kube.Client {
	t.Helper()
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
	return client
}
