// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/kube"
	"github.com/slipway-dev/slipway/internal/waiting"
)

// transport answers requests without a network.
type transport func(n int, req *http.Request) (*http.Response, error)

// connect returns a source over servers that answer as transport does, and the hosts of the
// requests they received.
func connect(t *testing.T, answer transport, servers ...string) (configresolve.Source, *[]string) {
	t.Helper()
	client, seen := dial(t, answer, servers...)
	return mapOf(client), seen
}

func dial(t *testing.T, answer transport, servers ...string) (*kube.Client, *[]string) {
	t.Helper()
	var seen []string
	client := clientOf(t, roundTripper(func(req *http.Request) (*http.Response, error) {
		seen = append(seen, req.URL.Host)
		return answer(len(seen), req)
	}), servers...)
	return client, &seen
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := f(req)
	if err == nil {
		response.Request = req // client-go needs it, as from a real transport
	}
	return response, err
}

func respond(code int, body string, header ...string) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	recorder.Header().Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		recorder.Header().Set(header[i], header[i+1])
	}
	recorder.WriteHeader(code)
	fmt.Fprint(recorder, body)
	response := recorder.Result()
	return response, nil
}

func found() (*http.Response, error) {
	return respond(200, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cfg","namespace":"kube-system"},"data":{"a":"1"}}`)
}

func TestCFG8_RetriesUntilAnswered(t *testing.T) {
	for name, failure := range map[string]func(req *http.Request) (*http.Response, error){
		"429":     func(*http.Request) (*http.Response, error) { return respond(429, "slow down") },
		"500":     func(*http.Request) (*http.Response, error) { return respond(500, "etcd") },
		"503":     func(*http.Request) (*http.Response, error) { return respond(503, "starting") },
		"504":     func(*http.Request) (*http.Response, error) { return respond(504, "timeout") },
		"refused": func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") },
		"body broke": func(*http.Request) (*http.Response, error) {
			r, err := respond(200, "")
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"apiVersion":`), broken{}))
			return r, err
		},
		"hangs": func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, seen := connect(t, func(n int, req *http.Request) (*http.Response, error) {
					if n <= 12 {
						return failure(req)
					}
					return found()
				}, "http://a")
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				layers, err := source.Read(ctx)
				require.NoError(t, err)
				require.Equal(t, values{"a": "1"}, layers[0].Values)
				require.Len(t, *seen, 13)
			})
		})
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestCFG8_HonoursRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, seen := connect(t, func(n int, _ *http.Request) (*http.Response, error) {
			if n == 1 {
				return respond(429, "", "Retry-After", "7")
			}
			return found()
		}, "http://a", "http://b")
		start := time.Now()
		_, err := source.Read(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(start), 7*time.Second)
		require.Less(t, time.Since(start), 9*time.Second)
		require.Equal(t, []string{"a", "a"}, *seen, "the request is not sent to another server")
	})
}

// Of three sources that wait at the same time one is said, with why and until when.
func TestPLAN20_CFG8_AnAPIServerThatIsWaitedForIsSaidEveryTenSeconds(t *testing.T) {
	for name, tc := range map[string]struct {
		answer func(*http.Request) (*http.Response, error)
		says   string
	}{
		"packets are dropped": {func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() }, "^the API server http://a( to answer$|: context deadline exceeded .attempt [12], the next at 2000-01-01T00:0)"},
		"it is overloaded": {func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusTooManyRequests, Status: "429", Header: http.Header{"Retry-After": {"25"}}, Body: http.NoBody}, nil
		}, "^the API server http://a: the API server answers 429 .attempt [123], the next at 2000-01-01T00:0"},
	} {
		synctest.Test(t, func(t *testing.T) {
			start, said := time.Now(), []time.Duration(nil)
			ctx := waiting.With(t.Context(), func(_ context.Context, what string, _ time.Duration) {
				require.Regexp(t, tc.says, what, name)
				said = append(said, time.Since(start).Round(time.Second))
			}, false)
			ctx, cancel := context.WithTimeout(ctx, 65*time.Second)
			defer cancel()
			_, err := configresolve.Resolve(ctx, threeSources(clientOf(t, roundTripper(tc.answer)))...)
			require.Error(t, err)
			for last := time.Duration(0); len(said) > 0; last, said = said[0], said[1:] {
				require.LessOrEqual(t, said[0]-last, 10*time.Second, name)
			}
		})
	}
}

func TestCFG8_FullJitter(t *testing.T) {
	const spread = 40 * time.Second
	for attempt, seconds := range []float64{0.5, 40, 40, 40} {
		require.Equal(t, seconds, kube.Window(attempt, false, spread).Seconds())
	}
	for attempt, seconds := range []float64{1, 2, 4, 8, 16, 32, 40, 40} {
		require.Equal(t, seconds, kube.Window(attempt, true, spread).Seconds())
	}
	require.Equal(t, spread, kube.Window(1000, true, spread))
	require.Equal(t, time.Millisecond, kube.Window(0, false, time.Millisecond))
	require.Equal(t, time.Millisecond, kube.Window(0, true, time.Millisecond))
}

// TestCFG8_NoWaveAfterAnOutage boots thousands of nodes at a steady rate, with a server that
// does not answer for 20 seconds in the middle.
func TestCFG8_NoWaveAfterAnOutage(t *testing.T) {
	for _, sources := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) { bootThroughAnOutage(t, sources) })
	}
}

func bootThroughAnOutage(t *testing.T, sources int) {
	const perSecond, seconds, from, to = 50, 150, 50, 70
	var mu sync.Mutex
	answered := make([]int, seconds+60)
	start := time.Now()
	answer := roundTripper(func(req *http.Request) (*http.Response, error) {
		second := int(time.Since(start) / time.Second)
		if second >= from && second < to {
			return nil, errors.New("connection refused")
		}
		mu.Lock()
		defer mu.Unlock()
		answered[second]++
		return answerAny(req)
	})
	var nodes sync.WaitGroup
	for range perSecond * seconds {
		nodes.Go(func() {
			client := clientOf(t, answer)
			_, err := configresolve.Resolve(waiting.Silent(t.Context()), threeSources(client)[:sources]...)
			require.NoError(t, err)
		})
		time.Sleep(time.Second / perSecond)
	}
	nodes.Wait()
	total := 0
	for second, n := range answered {
		total += n
		if second%5 == 4 { // five seconds at a time: single seconds vary too much
			five := answered[second-4] + answered[second-3] + answered[second-2] + answered[second-1] + n
			require.LessOrEqual(t, five, 2*5*perSecond*sources, "at %d s", second)
		}
	}
	require.Equal(t, perSecond*seconds*sources, total, "every node resolves")
}

const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":"%s","code":%d,"details":{"name":"cfg","kind":"configmaps"}}`

func ready(req *http.Request) bool { return req.URL.Path == "/readyz" }

func TestCFG8_FinalAnswers(t *testing.T) {
	for code, test := range map[int]struct {
		reason   string
		is       func(error) bool
		requests int
	}{
		401: {"Unauthorized", apierrors.IsUnauthorized, 3},
		403: {"Forbidden", apierrors.IsForbidden, 3},
		404: {"NotFound", func(err error) bool { return errors.Is(err, configresolve.ErrMissing) }, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			source, seen := connect(t, func(_ int, req *http.Request) (*http.Response, error) {
				if ready(req) {
					require.Equal(t, map[int]string{403: "Bearer secret"}[code], req.Header.Get("Authorization"), "none that is not accepted")
					return respond(200, "ok")
				}
				return respond(code, fmt.Sprintf(status, test.reason, code))
			}, "https://a", "https://b")
			start := time.Now()
			_, err := source.Read(t.Context())
			require.True(t, test.is(err), err)
			require.Len(t, *seen, test.requests, "a denied request is retried once the server reports ready")
			require.NotContains(t, *seen, "b")
			require.Less(t, time.Since(start), 5*time.Second)
		})
	}
}

func TestCFG8_DeniedByAServerThatStarts(t *testing.T) {
	for name, notReady := range map[string]func() (*http.Response, error){
		"not ready": func() (*http.Response, error) { return respond(500, "[-]informer-sync failed") },
		"denied":    func() (*http.Response, error) { return respond(403, fmt.Sprintf(status, "Forbidden", 403)) },
		"gone":      func() (*http.Response, error) { return nil, errors.New("connection refused") },
	} {
		for _, code := range []int{401, 403} {
			t.Run(fmt.Sprint(name, code), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					source, _ := connect(t, func(_ int, req *http.Request) (*http.Response, error) {
						started := time.Since(start) > 5*time.Second
						switch {
						case started && ready(req):
							return respond(200, "ok")
						case started:
							return found()
						case ready(req):
							return notReady()
						}
						return respond(code, fmt.Sprintf(status, "Denied", code))
					}, "http://a")
					layers, err := source.Read(t.Context())
					require.NoError(t, err)
					require.Equal(t, values{"a": "1"}, layers[0].Values)
				})
			})
		}
	}
}

func TestCFG8_AServerThatDeniesTheQuestionIsBelievedInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, _ := connect(t, func(int, *http.Request) (*http.Response, error) {
			return respond(403, fmt.Sprintf(status, "Forbidden", 403))
		}, "http://a")
		start := time.Now()
		_, err := source.Read(t.Context())
		require.True(t, apierrors.IsForbidden(err), err)
		require.GreaterOrEqual(t, time.Since(start), 30*time.Second)
		require.Less(t, time.Since(start), 2*time.Minute)
	})
}

func TestCFG8_ServersAreTriedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := "c"
		source, seen := connect(t, func(_ int, req *http.Request) (*http.Response, error) {
			switch {
			case req.URL.Host == up:
				return found()
			case req.URL.Host == "a":
				return nil, errors.New("connection refused")
			}
			return respond(503, "starting")
		}, "http://a", "http://b", "http://c")
		start := time.Now()
		_, err := source.Read(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b", "c"}, *seen)
		_, err = source.Read(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b", "c", "c"}, *seen, "the server that answered comes first")
		require.Zero(t, time.Since(start), "with no wait between servers")
		up = "b"
		_, err = source.Read(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b", "c", "c", "c", "a", "b"}, *seen)
	})
}

// A write may have been done, so it is not repeated, but the next request spares its server.
func TestCFG8_AFailedWriteIsSentOnceAndTheNextRequestGoesElsewhere(t *testing.T) {
	for code, asked := range map[int][]string{0: {"a", "b", "a"}, 500: {"a", "b", "a"}, 409: {"a", "a", "a"}} {
		client, seen := dial(t, func(int, *http.Request) (*http.Response, error) {
			if code == 0 {
				return nil, errors.New("connection refused")
			}
			return respond(code, fmt.Sprintf(status, "Conflict", code))
		}, "http://a", "http://b")
		for range asked {
			require.Error(t, requests["patch"](t.Context(), client))
		}
		require.Equal(t, asked, *seen, code)
	}
}

func TestCFG8_CertificateErrorsAreFinal(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	read := func(connection kube.Connection) error {
		client, err := connection.Client()
		require.NoError(t, err)
		_, err = mapOf(client).Read(t.Context())
		return err
	}
	kubeconfig := writeKubeconfig(t, server.URL)
	require.ErrorContains(t, read(kube.Connection{Kubeconfig: kubeconfig}), "x509")
	require.ErrorContains(t, read(kube.Connection{Kubeconfig: kubeconfig, Servers: []string{server.URL, server.URL}}), "x509")

	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	https := strings.Replace(plain.URL, "http:", "https:", 1)
	require.ErrorContains(t, read(kube.Connection{Kubeconfig: kubeconfig, Servers: []string{https}}), "HTTP")
}

func writeKubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q}}]
users: [{name: u, user: {token: secret}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, server), 0o600))
	return path
}

func TestConnectionByKubeconfig(t *testing.T) {
	var seen *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"me","labels":{"config.cilium.io/a":"1"}}}`)
	}))
	defer server.Close()
	client, err := kube.Connection{Kubeconfig: writeKubeconfig(t, server.URL), UserAgent: "agent/1"}.Client()
	require.NoError(t, err)
	require.Equal(t, values{"a": "1"}, all(resolve(t, nodeOf(client))))
	require.Equal(t, "/api/v1/nodes/me", seen.URL.Path)
	require.Equal(t, "agent/1", seen.Header.Get("User-Agent"))
	require.Contains(t, seen.Header.Get("Accept"), "as=PartialObjectMetadata", "metadata only")
	require.Empty(t, seen.Header.Get("Authorization"), "no token in clear text")
}

func TestKubeconfigsPathsStartFromItsDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: https://a, certificate-authority: ca.crt}}]
users: [{name: u, user: {client-certificate: pki/u.crt, client-key: /pki/u.key}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`), 0o600))
	_, err := kube.Connection{Kubeconfig: path}.Config()
	for _, missing := range []string{filepath.Join(filepath.Dir(path), "ca.crt"), filepath.Join(filepath.Dir(path), "pki/u.crt"), "/pki/u.key"} {
		require.ErrorContains(t, err, "open "+missing+": ")
	}
}

func TestConnectionErrors(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	empty, endless := filepath.Join(t.TempDir(), "empty"), filepath.Join(t.TempDir(), "endless")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	require.NoError(t, os.WriteFile(endless, nil, 0o600))
	require.NoError(t, os.Truncate(endless, 1<<40))
	broken := filepath.Join(t.TempDir(), "broken")
	require.NoError(t, os.WriteFile(broken, []byte("kind: Config\nno map\n"), 0o600))
	require.ErrorContains(t, kube.Connection{Servers: []string{"a"}}.Validate(), `"a": want http:// or https://`)
	for want, connection := range map[string]kube.Connection{
		"must be defined (outside a pod, ": {}, // and no token is missed
		"credentials of the cluster":       {Servers: []string{"https://10.0.0.1:6443"}},
		"cannot be mixed":                  {Servers: []string{"https://a", "http://b"}},
		"want http:// or https://":         {Servers: []string{"10.0.0.1:6443/x"}},
		"are not sent to http":             {Kubeconfig: writeKubeconfig(t, "https://a"), Servers: []string{"http://a"}},
		`"ftp://a"`:                        {Servers: []string{"ftp://a"}},
		"and no path":                      {Servers: []string{"https://a/b"}},
		"no-such-file":                     {Kubeconfig: filepath.Join(t.TempDir(), "no-such-file")},
		"no configuration has been":        {Kubeconfig: empty}, // and the cluster is not tried instead
		"not a regular file":               {Kubeconfig: os.DevNull},
		"is larger than":                   {Kubeconfig: endless},
		"could not find expected ':'":      {Kubeconfig: broken},
	} {
		_, err := connection.Client()
		require.ErrorContains(t, err, want)
	}
	for _, connection := range []kube.Connection{{Mark: 1}, {DialTimeout: 1}, {KeepAlive: 1}, {Dialed: func(kube.Attempt) {}}} {
		connection.Servers = []string{"http://a"}
		config, err := connection.Config()
		require.NoError(t, err)
		require.NotNil(t, config.Dial, "each of them counts by itself")
	}
}
