// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube_test

import (
	"context"
	"crypto/tls"
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/configresolve/kube"
)

// requests are one of each kind that a client sends.
var requests = map[string]func(context.Context, *kube.Client) error{
	"get": func(ctx context.Context, c *kube.Client) error {
		_, err := mapOf(c).Read(ctx)
		return err
	},
	"list": func(ctx context.Context, c *kube.Client) error {
		_, err := c.NodeConfigs(namespace, "", kube.Cilium().NodeConfigs...).Read(ctx)
		return err
	},
	"watch": func(ctx context.Context, c *kube.Client) error {
		_, err := c.Dynamic.Resource(v2).Watch(ctx, metav1.ListOptions{})
		return err
	},
	"patch": func(ctx context.Context, c *kube.Client) error {
		_, err := c.Metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}).Patch(ctx, "me", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
		return err
	},
	"create": func(ctx context.Context, c *kube.Client) error {
		_, err := c.Dynamic.Resource(v2).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: fields{"apiVersion": "cilium.io/v2", "kind": "CiliumNodeConfig"}}, metav1.CreateOptions{})
		return err
	},
}

// After 101 the connection belongs to the caller, and no context ends its reads.
func TestSEC6_AnotherProtocolIsNoAnswer(t *testing.T) {
	for name, request := range requests {
		t.Run(name, func(t *testing.T) {
			closed := make(chan error, 1)
			client := hostile(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				conn, _, err := w.(http.Hijacker).Hijack()
				if err == nil {
					fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
					_, err = conn.Read(make([]byte, 1))
				}
				closed <- err
			})
			err := request(t.Context(), client)
			require.ErrorContains(t, err, "the API server switches to another protocol, for which it was not asked: 101 Switching Protocols")
			require.ErrorIs(t, <-closed, io.EOF, "the connection is closed")
		})
	}
}

func TestSEC6_EveryAnswerHasABound(t *testing.T) {
	for name, request := range requests {
		for _, status := range []int{http.StatusOK, http.StatusForbidden, http.StatusConflict} {
			if name == "watch" && status == http.StatusOK {
				continue // it may go on forever
			}
			t.Run(fmt.Sprint(name, status), func(t *testing.T) {
				var sent, most atomic.Int64 // in one answer
				client := hostile(t, func(w http.ResponseWriter, r *http.Request) {
					w.WriteHeader(status)
					fmt.Fprint(w, `{"a":"`)
					chunk := strings.Repeat("a", mebibyte)
					for sent.Store(0); r.Context().Err() == nil && sent.Load() < 80*mebibyte; most.Store(max(most.Load(), sent.Load())) {
						n, _ := io.WriteString(w, chunk)
						sent.Add(int64(n))
					}
				})
				require.ErrorContains(t, request(t.Context(), client), "more than 4194304 bytes in one answer")
				require.Less(t, most.Load(), int64(32*mebibyte), "plus the kernel's socket buffers")
			})
		}
	}
}

// trickle is a body that has no end until its request does.
type trickle struct {
	io.Reader
	ctx context.Context
}

func (b trickle) Read(p []byte) (int, error) {
	if n, err := b.Reader.Read(p); err == nil {
		return n, nil
	}
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

func (trickle) Close() error { return nil }

// The error tells an answer without an end from a server that gives none.
func TestSEC6_AnAnswerWithoutAnEndEndsWithTheContext(t *testing.T) {
	for name, request := range requests {
		for _, status := range []int{http.StatusOK, http.StatusForbidden} {
			if name == "watch" && status == http.StatusOK {
				continue
			}
			for _, limit := range []time.Duration{20 * time.Second, 10 * time.Minute} {
				t.Run(fmt.Sprint(name, status, limit), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						client := clientOf(t, roundTripper(func(req *http.Request) (*http.Response, error) {
							response, err := respond(status, "")
							response.Body = trickle{strings.NewReader(`{"a":`), req.Context()}
							return response, err
						}))
						ctx, cancel := context.WithTimeout(t.Context(), limit)
						defer cancel()
						start := time.Now()
						err := request(ctx, client)
						require.ErrorIs(t, err, context.DeadlineExceeded)
						require.ErrorContains(t, err, "read the answer, of which 5 bytes came")
						require.Equal(t, limit, time.Since(start))
					})
				})
			}
		}
	}
}

// A Node is named only by an answer that holds it alone and as a whole.
func TestSEC6_ANodeThatIsTooLargeIsNamed(t *testing.T) {
	many := `{"a":[` + strings.Repeat("0,", 60_000) + "0]}"
	for answer, want := range map[string]string{
		`{"metadata":{"continue":""},"items":[{"metadata":{"name":"n1","annotations":` + many + `}}]}`:   "",
		`{"metadata":{},"items":[{"metadata":{"name":"n1"}},{"metadata":{"annotations":` + many + `}}]}`: "more than 50000 entries in one answer",
		`{"metadata":{},"items":[{"metadata":{"annotations":` + many + `}}]}`:                            "more than 50000 entries in one answer",
		strings.Repeat("[", 60_000): "more than 50000 entries in one answer",
	} {
		var named []string
		client := clientOf(t, roundTripper(func(*http.Request) (*http.Response, error) { return respond(200, answer) }))
		err := client.EachNode(t.Context(), "", func(node *metav1.PartialObjectMetadata, err error) {
			require.ErrorContains(t, err, "more than 50000 entries in one answer")
			named = append(named, node.Name)
		})
		if want == "" {
			require.NoError(t, err)
			require.Equal(t, []string{"n1"}, named)
			continue
		}
		require.ErrorContains(t, err, want)
		require.Empty(t, named)
	}
	client := clientOf(t, roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.URL.Query().Get("limit") != "1" {
			return respond(200, many)
		}
		return respond(200, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{},"items":[{"metadata":{"name":"n2"}}]}`)
	}))
	require.NoError(t, client.EachNode(t.Context(), "", func(node *metav1.PartialObjectMetadata, err error) {
		require.NoError(t, err, "by itself it is not too large")
		require.Equal(t, "n2", node.Name)
	}))
	require.ErrorContains(t, (*kube.Client)(nil).EachNode(t.Context(), "", nil), "no client given")
}

// GO-2026-4918 of golang.org/x/net: told that a frame of its may be 0 bytes long, the client
// sent such frames for ever. Whether the refusal comes before the request or after it, which is
// then repeated, the request is sent as the settings say.
func TestSEC6_AServerThatAllowsNoFramesGetsNone(t *testing.T) {
	const settings, refusal = "\x00\x00\x06\x04\x00\x00\x00\x00\x00" + "\x00\x05\x00\x00\x00\x00", "\x00\x00\x04\x03\x00\x00\x00\x00\x01" + "\x00\x00\x00\x07"
	ctx, cancel := context.WithCancelCause(t.Context())
	server := httptest.NewUnstartedServer(nil)
	server.EnableHTTP2 = true
	server.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
		"h2": func(_ *http.Server, conn *tls.Conn, _ http.Handler) {
			_, err := io.WriteString(conn, settings+refusal)
			if err == nil {
				_, err = io.CopyN(io.Discard, conn, mebibyte)
			}
			cancel(err) // the first connection is enough
		},
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	require.Error(t, requests["get"](ctx, trusting(t, server)))
	require.ErrorIs(t, context.Cause(ctx), io.EOF, "the client closes the connection")
}
