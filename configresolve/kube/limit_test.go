// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/kube"
)

const mebibyte = 1 << 20

// hostile starts a server and returns a client of it.
func hostile(t *testing.T, answer http.HandlerFunc) *kube.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	client, err := kube.Connection{Servers: []string{server.URL}}.Client()
	require.NoError(t, err)
	return client
}

func TestSEC6_EndlessPages(t *testing.T) {
	for name, test := range map[string]struct {
		padding int // bytes in each page
		empty   int // objects in each page, beside the one that is none
		pages   int64
		want    string
	}{
		"of nothing": {0, 0, 100, "a list of more than 100 pages"},
		"of much":    {2 * mebibyte, 0, 32, "more than 67108864 bytes for one source"},
		"of many":    {0, 100_000, 10, "more than 1000000 objects and lists for one source"},
	} {
		t.Run(name, func(t *testing.T) {
			var pages atomic.Int64
			padding, empty := strings.Repeat("a", test.padding), strings.Repeat(",{}", test.empty)
			client := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, `{"apiVersion":"cilium.io/v2","kind":"CiliumNodeConfigList","metadata":{"continue":"%d"},"items":[{"apiVersion":"cilium.io/v2","kind":"CiliumNodeConfig","metadata":{"name":"x","annotations":{"a":%q}},"spec":[0%s]}]}`,
					pages.Add(1), padding, empty)
			})
			_, err := kube.NodeConfigs{Client: client, Namespace: namespace, Resource: kube.Cilium().NodeConfigs}.Read(t.Context())
			require.ErrorContains(t, err, "list ciliumnodeconfigs.cilium.io in namespace kube-system: ")
			require.ErrorContains(t, err, test.want)
			require.Equal(t, test.pages, pages.Load())
		})
	}
}

// A list that is read anew because it expired has no more pages than another.
func TestSEC6_PagesThatExpireForEver(t *testing.T) {
	var requests atomic.Int64
	client := hostile(t, func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1); r.URL.Query().Has("continue") {
			w.WriteHeader(http.StatusGone)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
			return
		}
		fmt.Fprint(w, `{"apiVersion":"cilium.io/v2","kind":"CiliumNodeConfigList","metadata":{"continue":"x"},"items":[]}`)
	})
	_, err := kube.NodeConfigs{Client: client, Namespace: namespace, Resource: kube.Cilium().NodeConfigs}.Read(t.Context())
	require.ErrorContains(t, err, "a list of more than 100 pages")
	require.EqualValues(t, 100, requests.Load())
}

func TestSEC6_EndlessAnswer(t *testing.T) {
	var sent atomic.Int64
	client := hostile(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"`)
		chunk := strings.Repeat("a", mebibyte)
		for r.Context().Err() == nil {
			n, _ := io.WriteString(w, chunk)
			sent.Add(int64(n))
		}
	})
	_, err := kube.ConfigMap{Client: client, Namespace: namespace, Name: "cfg"}.Read(t.Context())
	require.ErrorContains(t, err, "more than 67108864 bytes for one source")
	require.Less(t, sent.Load(), int64(96*mebibyte), "what the kernel holds comes on top")
}

// A watch ends with its budget, and the feed with it: a list says what is true.
func TestSEC6_EndlessWatch(t *testing.T) {
	for name, stream := range map[string]func(int) string{
		"of events": func(n int) string {
			return fmt.Sprintf(`{"type":"ADDED","object":{"apiVersion":"cilium.io/v2","kind":"CiliumNodeConfig","metadata":{"name":"x%d","resourceVersion":"2"},"spec":{"a":%q}}}`+"\n", n, strings.Repeat("a", mebibyte))
		},
		"of small things": func(n int) string {
			return fmt.Sprintf(`{"type":"ADDED","object":{"apiVersion":"cilium.io/v2","kind":"CiliumNodeConfig","metadata":{"name":"x%d","resourceVersion":"2"},"spec":{"a":[0%s]}}}`+"\n", n, strings.Repeat(",[]", 10_000))
		},
		"of one event": func(n int) string {
			if n == 0 {
				return `{"type":"ADDED","object":{"metadata":{"name":"`
			}
			return strings.Repeat("a", mebibyte)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lists, sent := 0, 0
				ctx, cancel := context.WithCancel(t.Context())
				client, err := kube.Connection{Servers: []string{"http://a"}, Wrap: func(http.RoundTripper) http.RoundTripper {
					return roundTripper(func(req *http.Request) (*http.Response, error) {
						if !req.URL.Query().Has("watch") {
							if lists++; lists == 2 {
								cancel()
							}
							return respond(200, `{"apiVersion":"cilium.io/v2","kind":"CiliumNodeConfigList","metadata":{"resourceVersion":"1"},"items":[]}`)
						}
						response, err := respond(200, "")
						response.Body = io.NopCloser(&endless{next: stream, sent: &sent})
						return response, err
					})
				}}.Client()
				require.NoError(t, err)
				source := kube.NodeConfigs{Client: client, Namespace: namespace, NodeName: "me", Resource: kube.Cilium().NodeConfigs}
				err = kube.Watch(ctx, configresolve.Resolver{Sources: []configresolve.Source{source}}, func(configresolve.Update) error { return nil })
				require.ErrorIs(t, err, context.Canceled)
				require.Equal(t, 2, lists, "the state is listed anew")
				most := 66 * mebibyte
				if strings.Contains(name, "small") {
					most = 8 * mebibyte
				}
				require.Less(t, sent, most)
			})
		})
	}
}

// endless is a text that goes on until somebody has had enough of it, or until
// it is plain that nobody has.
type endless struct {
	next  func(n int) string
	sent  *int
	n     int
	piece strings.Reader
}

func (e *endless) Read(p []byte) (int, error) {
	if *e.sent > 80*mebibyte {
		return 0, io.EOF
	}
	if e.piece.Len() == 0 {
		e.piece.Reset(e.next(e.n))
		e.n++
	}
	n, err := e.piece.Read(p)
	*e.sent += n
	return n, err
}

// What is said of an object that is none has nothing of its content.
func TestSEC6_WhatIsNoObjectIsNotRepeated(t *testing.T) {
	long := strings.Repeat(`[],`, 500_000)
	for name, spec := range map[string]string{
		"spec":     `[` + long + `0]`,
		"defaults": `{"defaults":[` + long + `0],"nodeSelector":{}}`,
		"value":    `{"defaults":{"a":[` + long + `0]},"nodeSelector":{}}`,
		"selector": `{"defaults":{"a":"b"},"nodeSelector":[` + long + `0]}`,
	} {
		client, err := kube.Connection{Servers: []string{"http://a"}, Wrap: func(http.RoundTripper) http.RoundTripper {
			return roundTripper(func(*http.Request) (*http.Response, error) {
				return respond(200, `{"apiVersion":"cilium.io/v2","kind":"CiliumNodeConfigList","metadata":{},"items":[`+
					`{"apiVersion":"cilium.io/v2","kind":"CiliumNodeConfig","metadata":{"name":"x"},"spec":`+spec+`}]}`)
			})
		}}.Client()
		require.NoError(t, err)
		_, err = kube.NodeConfigs{Client: client, Namespace: namespace, NodeName: "me", Resource: kube.Cilium().NodeConfigs}.Read(t.Context())
		require.ErrorContains(t, err, "not a", name)
		require.Less(t, len(err.Error()), 1000, name)
	}
}

// The token goes to the server that it was given for, and nowhere else.
func TestSEC6_RedirectElsewhereIsRefused(t *testing.T) {
	asked := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer elsewhere.Close()
	for name, test := range map[string]struct{ location, want string }{
		"another host":     {elsewhere.URL + "/api", "302 Found to " + elsewhere.URL},
		"a user's secret":  {"https://user:pass@example.com/", "302 Found to https://example.com ("},
		"another scheme":   {"https://a/api", "302 Found to https://a"},
		"another port":     {"http://a:81/api", "302 Found to http://a:81"},
		"nothing readable": {"http://[", "302 Found, whose Location is not a URL"},
	} {
		t.Run(name, func(t *testing.T) {
			source, seen := connect(t, func(_ int, _ *http.Request) (*http.Response, error) {
				return respond(http.StatusFound, "", "Location", test.location)
			}, "http://a")
			_, err := source.Read(t.Context())
			require.ErrorContains(t, err, "the API server sends us elsewhere, where our credentials do not go: ")
			require.Contains(t, err.Error()+" (", test.want)
			require.NotContains(t, err.Error(), "pass")
			require.Equal(t, []string{"a"}, *seen)
		})
	}
	require.Zero(t, asked)

	t.Run("from TLS to clear text", func(t *testing.T) {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+r.Host+r.URL.Path, http.StatusMovedPermanently)
		}))
		defer server.Close()
		client, err := kube.Connection{Kubeconfig: writeKubeconfig(t, server.URL), Wrap: func(http.RoundTripper) http.RoundTripper {
			return server.Client().Transport
		}}.Client()
		require.NoError(t, err)
		_, err = kube.ConfigMap{Client: client, Namespace: namespace, Name: "cfg"}.Read(t.Context())
		require.ErrorContains(t, err, "elsewhere, where our credentials do not go: 301 Moved Permanently to http://127.0.0.1")
	})

	t.Run("within the server", func(t *testing.T) {
		source, seen := connect(t, func(n int, _ *http.Request) (*http.Response, error) {
			if n == 1 {
				return respond(http.StatusMovedPermanently, "", "Location", "/api/v1/elsewhere")
			}
			return found()
		}, "http://a")
		_, err := source.Read(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"a", "a"}, *seen)
	})
}

// With several servers, one that is no API server is not the last word.
func TestSEC6_RedirectOfOneServerOfSeveral(t *testing.T) {
	source, seen := connect(t, func(_ int, req *http.Request) (*http.Response, error) {
		if req.URL.Host == "a" {
			return respond(http.StatusFound, "", "Location", "https://login.example.com/")
		}
		return found()
	}, "http://a", "http://b")
	_, err := source.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, *seen)
}

func TestSEC6_SlowAnswerEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client := hostile(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			fmt.Fprint(w, " ")
			w.(http.Flusher).Flush()
			time.Sleep(time.Millisecond)
			cancel()
		}
	})
	_, err := kube.ConfigMap{Client: client, Namespace: namespace, Name: "cfg"}.Read(ctx)
	require.ErrorIs(t, err, context.Canceled)
}
