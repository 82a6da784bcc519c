// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/kube"
)

const mebibyte = 1 << 20

// hostile starts a server that uses answer, and returns a client of it.
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
	const nobody, every = `{"matchExpressions":[{"key":"a","operator":"Exists"}]}`, `{}`
	for name, test := range map[string]struct {
		selector string
		padding  int // bytes in each object's annotations
		value    int // bytes in each object's value
		objects  int
		pages    int64
		want     string
	}{
		"of nothing":           {nobody, 0, 0, 0, 100, "a list of more than 100 pages"},
		"of many":              {nobody, 0, 0, 15_000, 8, "more than 50000 entries in one answer"},
		"of large ones":        {nobody, 0, 3 * mebibyte, 2, 8, "more than 4194304 bytes in one answer"},
		"that are all wanted":  {every, 0, mebibyte, 2, 8, "node configs of more than 16777216 bytes for one source"},
		"of what nobody reads": {every, mebibyte, 0, 2, 32, "more than 67108864 bytes for one source"},
	} {
		t.Run(name, func(t *testing.T) {
			var pages atomic.Int64
			padding, value := strings.Repeat("a", test.padding), strings.Repeat("b", test.value)
			client := hostile(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "/nodes/") {
					fmt.Fprint(w, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"me"}}`)
					return
				}
				fmt.Fprintf(w, `{"apiVersion":"cilium.io/v2","kind":"CiliumNodeConfigList","metadata":{"continue":"%d"},"items":[`, pages.Add(1))
				for i := range test.objects {
					if i > 0 {
						fmt.Fprint(w, ",")
					}
					fmt.Fprintf(w, `{"apiVersion":"cilium.io/v2","kind":"CiliumNodeConfig","metadata":{"name":"x%d","namespace":"kube-system","annotations":{"a":"%s"}},"spec":{"nodeSelector":%s,"defaults":{"a":"%s"}}}`,
						i, padding, test.selector, value)
				}
				fmt.Fprint(w, "]}")
			})
			_, err := nodeConfigsOf(client).Read(t.Context())
			require.ErrorContains(t, err, "list ciliumnodeconfigs.cilium.io in namespace kube-system: ")
			require.ErrorContains(t, err, test.want)
			require.Equal(t, test.pages, pages.Load())
		})
	}
}

func TestSEC6_AnAnswerMayReachItsBounds(t *testing.T) {
	const text = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cfg","namespace":"kube-system"},"data":{"a":"1"},"x":[%s0]}`
	const entries = 4 + 1 + 4 // objects, lists and commas
	for more, says := range []string{"", "more than "} {
		for bound, answer := range map[string]string{
			"50000 entries": fmt.Sprintf(text, strings.Repeat("0,", 50_000-entries+more)),
			"4194304 bytes": strings.Repeat(" ", 4*mebibyte-len(text)+len("%s")+more) + fmt.Sprintf(text, ""),
		} {
			client := clientOf(t, roundTripper(func(*http.Request) (*http.Response, error) { return respond(200, answer) }))
			if _, err := mapOf(client).Read(t.Context()); says == "" {
				require.NoError(t, err, bound)
			} else {
				require.ErrorContains(t, err, says+bound)
			}
		}
	}
}

// Commas and braces inside a value do not count as entries.
func TestSEC6_CommasAndBracesInAValueAreNotCounted(t *testing.T) {
	value := strings.Repeat(`{[,"\`, 150_000)
	client := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
		text, err := json.Marshal(configMap("cfg", values{"a": value}))
		require.NoError(t, err)
		_, _ = w.Write(text)
	})
	config := resolve(t, mapOf(client))
	require.Equal(t, value, all(config)["a"])
}

// Entries can be counted in JSON only, and aliases multiply what YAML is decoded to.
func TestSEC6_OnlyJSONIsDecoded(t *testing.T) {
	const inYAML = "apiVersion: meta.k8s.io/v1\nkind: PartialObjectMetadata\nmetadata:\n  name: me\n  annotations:\n    a: &a b\n    c: *a\n"
	const binary = "k8s\x00\x0a\x27\x0a\x0emeta.k8s.io/v1\x12\x15PartialObjectMetadata\x12\x06\x0a\x04\x0a\x02me"
	for name, test := range map[string]struct {
		format []string
		answer string
	}{
		"YAML":                  {[]string{"application/yaml"}, inYAML},
		"protobuf":              {[]string{"application/vnd.kubernetes.protobuf"}, binary},
		"of which none is said": {nil, binary},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan string, 1)
			client := hostile(t, func(w http.ResponseWriter, r *http.Request) {
				asked <- r.Header.Get("Accept")
				w.Header()["Content-Type"] = test.format
				_, _ = io.WriteString(w, test.answer)
			})
			_, err := nodeOf(client).Read(t.Context())
			require.EqualError(t, err, "get nodes me: serializer for text/plain doesn't exist")
			require.Equal(t, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json", <-asked)
		})
	}
}

// A watch that exceeds the limit ends, and so does its feed: the next list gives the true
// state.
func TestSEC6_EndlessWatch(t *testing.T) {
	for name, stream := range map[string]func(int) string{
		"of events": func(n int) string {
			return fmt.Sprintf(`{"type":"ADDED","object":{"apiVersion":"cilium.io/v2","kind":"CiliumNodeConfig","metadata":{"name":"x%d","namespace":"kube-system","resourceVersion":"2"},"spec":{"a":%q}}}`+"\n", n, strings.Repeat("a", mebibyte))
		},
		"of small things": func(n int) string {
			return fmt.Sprintf(`{"type":"ADDED","object":{"apiVersion":"cilium.io/v2","kind":"CiliumNodeConfig","metadata":{"name":"x%d","namespace":"kube-system","resourceVersion":"2"},"spec":{"a":[0%s]}}}`+"\n", n, strings.Repeat(",[]", 10_000))
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
				client := clientOf(t, roundTripper(func(req *http.Request) (*http.Response, error) {
					if !req.URL.Query().Has("watch") {
						if lists++; lists == 2 {
							cancel()
						}
						return respond(200, `{"apiVersion":"cilium.io/v2","kind":"CiliumNodeConfigList","metadata":{"resourceVersion":"1"},"items":[]}`)
					}
					response, err := respond(200, "")
					response.Body = io.NopCloser(&endless{next: stream, sent: &sent})
					return response, err
				}))
				source := nodeConfigsOf(client)
				err := kube.Watch(ctx, configresolve.Resolver{Sources: []configresolve.Source{source}}, func(configresolve.Update) error { return nil })
				require.ErrorIs(t, err, context.Canceled)
				require.Equal(t, 2, lists, "the state is listed again")
				require.Less(t, sent, 18*mebibyte)
			})
		})
	}
}

// A watch may go on forever: only the retained data and each single event are limited.
func TestSEC6_LongWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := serve(map[string]map[string]fields{v2Path: {}})
		client := clientOf(t, api)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		const events = 20
		source := nodeConfigsOf(client)
		changes := 0
		go func() {
			synctest.Wait()
			for i := range events {
				api.set(v2Path, "MODIFIED", nodeConfig(v2, "x", "{}", values{"n": fmt.Sprint(i), "a": strings.Repeat("a", mebibyte)}).Object)
				synctest.Wait()
				api.set(v2Path, "ADDED", nodeConfig(v2, "y", "{}", values{"a": strings.Repeat("b", mebibyte)}).Object)
				synctest.Wait()
				api.set(v2Path, "DELETED", nodeConfig(v2, "y", "{}", values{"a": strings.Repeat("b", mebibyte)}).Object)
				synctest.Wait()
			}
			cancel()
		}()
		err := kube.Watch(ctx, configresolve.Resolver{Sources: []configresolve.Source{source}}, func(configresolve.Update) error {
			changes++
			return nil
		})
		require.ErrorIs(t, err, context.Canceled)
		require.GreaterOrEqual(t, changes, events)
		require.Equal(t, []string{"list ciliumnodeconfigs", "watch ciliumnodeconfigs from 100 at a"}, api.seen, "the first list only")
	})
}

// endless is a text that continues until the reader stops, or until it is clear that the reader
// has no limit.
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

// The error for an answer that is not an object repeats none of its content.
func TestSEC6_AnErrorRepeatsNothingOfAnAnswerThatIsNoObject(t *testing.T) {
	long := strings.Repeat(`[],`, 20_000)
	for name, spec := range map[string]string{
		"spec":     `[` + long + `0]`,
		"defaults": `{"defaults":[` + long + `0],"nodeSelector":{}}`,
		"value":    `{"defaults":{"a":[` + long + `0]},"nodeSelector":{}}`,
		"selector": `{"defaults":{"a":"b"},"nodeSelector":[` + long + `0]}`,
	} {
		client := clientOf(t, roundTripper(func(*http.Request) (*http.Response, error) {
			return respond(200, `{"apiVersion":"cilium.io/v2","kind":"CiliumNodeConfigList","metadata":{},"items":[`+
				`{"apiVersion":"cilium.io/v2","kind":"CiliumNodeConfig","metadata":{"name":"x","namespace":"kube-system"},"spec":`+spec+`}]}`)
		}))
		_, err := nodeConfigsOf(client).Read(t.Context())
		require.ErrorContains(t, err, "not a", name)
		require.Less(t, len(err.Error()), 1000, name)
	}
}

// The token is sent to the configured server and nowhere else.
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
			require.ErrorContains(t, err, "the API server redirects to another place, to which no credentials are sent: ")
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
		_, err = mapOf(client).Read(t.Context())
		require.ErrorContains(t, err, "redirects to another place, to which no credentials are sent: 301 Moved Permanently to http://127.0.0.1")
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

// With several servers, one that is not an API server does not decide the result.
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
