// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/kube"
)

const (
	mapsPath        = "/api/v1/namespaces/kube-system/configmaps"
	nodesPath       = "/api/v1/nodes"
	v2Path          = "/apis/cilium.io/v2/namespaces/kube-system/ciliumnodeconfigs"
	olderPath       = "/apis/cilium.io/v2alpha1/namespaces/kube-system/ciliumnodeconfigs"
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
)

// watchAPI is an API server that lists and watches, without a network.
type watchAPI struct {
	mu      sync.Mutex
	version int
	objects map[string]map[string]fields // by path and name
	streams map[string]*io.PipeWriter    // the open watch of a path
	seen    []string                     // "get PATH", "list PATH", "watch PATH from VERSION at HOST"
	answer  func(req *http.Request) (*http.Response, error)
}

// serve makes an API server that serves only the paths it has objects for.
func serve(objects map[string]map[string]fields) *watchAPI {
	return &watchAPI{version: 100, objects: objects, streams: map[string]*io.PipeWriter{}}
}

func (a *watchAPI) RoundTrip(req *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	path, query := req.URL.Path, req.URL.Query()
	list, name := path[:strings.LastIndex(path, "/")], path[strings.LastIndex(path, "/")+1:]
	one, get := a.objects[list]
	switch {
	case ready(req):
		return respond(200, "ok")
	case query.Has("watch"):
		a.seen = append(a.seen, fmt.Sprintf("watch %s from %s at %s", short(path), query.Get("resourceVersion"), req.URL.Host))
	case get:
		a.seen = append(a.seen, "get "+short(list))
	default:
		a.seen = append(a.seen, "list "+short(path))
	}
	if a.answer != nil {
		if response, err := a.answer(req); response != nil || err != nil {
			return response, err
		}
	}
	objects, served := a.objects[path]
	switch {
	case strings.HasPrefix(path, nodesPath) && !strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadata"):
		return respond(406, "metadata only")
	case get && one[name] == nil:
		return respond(404, fmt.Sprintf(status, "NotFound", 404))
	case get:
		text, _ := json.Marshal(one[name])
		return respond(200, string(text))
	case !served:
		return respond(404, "404 page not found")
	case query.Has("watch"):
		reader, writer := io.Pipe()
		a.streams[path] = writer
		return &http.Response{StatusCode: 200, Status: "200 OK", Header: http.Header{"Content-Type": {"application/json"}}, Body: reader, Request: req}, nil
	}
	items := []fields{}
	for _, o := range objects {
		items = append(items, o)
	}
	all := fields{"kind": "List", "apiVersion": "v1", "metadata": fields{"resourceVersion": fmt.Sprint(a.version)}, "items": items}
	if path == nodesPath || path == definitionsPath {
		all["kind"], all["apiVersion"] = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	text, _ := json.Marshal(all)
	return respond(200, string(text))
}

func short(path string) string { return path[strings.LastIndex(path, "/")+1:] }

// set changes an object and sends the change to the watch of its path.
func (a *watchAPI) set(path, kind string, o fields) {
	a.mu.Lock()
	a.version++
	meta := o["metadata"].(fields)
	meta["resourceVersion"] = fmt.Sprint(a.version)
	if kind == "DELETED" {
		delete(a.objects[path], meta["name"].(string))
	} else {
		a.objects[path][meta["name"].(string)] = o
	}
	stream := a.streams[path]
	a.mu.Unlock()
	if stream != nil {
		a.event(path, kind, o)
	}
}

func (a *watchAPI) event(path, kind string, o fields) {
	text, _ := json.Marshal(fields{"type": kind, "object": o})
	a.mu.Lock()
	stream := a.streams[path]
	a.mu.Unlock()
	fmt.Fprintf(stream, "%s\n", text)
}

// end ends the watch of a path, as an API server does when the watch times out.
func (a *watchAPI) end(path string) {
	a.mu.Lock()
	stream := a.streams[path]
	delete(a.streams, path)
	a.mu.Unlock()
	stream.Close()
}

func (a *watchAPI) asked() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := a.seen
	a.seen = nil
	return asked
}

// reports collects the reports of a Watch.
type reports struct {
	mu    sync.Mutex
	count int
	lines []string
	end   func() error
}

// take returns the reports since the last call, once all goroutines are idle.
func (r *reports) take() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines
	r.lines = nil
	return lines
}

func (r *reports) add(u configresolve.Update) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	if u.Err != nil {
		r.lines = append(r.lines, "error: "+u.Err.Error())
	}
	for _, c := range u.Changes {
		if !strings.HasPrefix(c.Key, "config-sources") {
			r.lines = append(r.lines, c.String())
		}
	}
	return nil
}

// watch starts a Watch of the first of threeSources.
func (a *watchAPI) watch(t *testing.T, sources int, servers ...string) *reports {
	t.Helper()
	client := clientOf(t, a, servers...)
	r := &reports{}
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		done <- kube.Watch(ctx, configresolve.Resolver{Sources: threeSources(client)[:sources]}, r.add)
	}()
	r.end = func() error {
		cancel()
		return <-done
	}
	return r
}

func mapObject(value string) fields { return configMap("cfg", values{"a": value}).Object }

func nodeObject(zone string) fields {
	return fields{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": fields{"name": "me", "labels": fields{"zone": zone}}}
}

func crObject(name, zone string) fields {
	return nodeConfig(v2, name, fmt.Sprintf(`{"matchLabels":{"zone":%q}}`, zone), values{"b": name}).Object
}

func TestCFG10_WatchGoesOnWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := serve(map[string]map[string]fields{mapsPath: {"cfg": mapObject("1")}})
		r := a.watch(t, 1)
		require.Equal(t, []string{`a = "1" from config-map:kube-system/cfg`}, r.take())
		require.Equal(t, []string{"list configmaps", "watch configmaps from 100 at a"}, a.asked())

		a.set(mapsPath, "MODIFIED", mapObject("2"))
		require.Equal(t, []string{`a = "2" from config-map:kube-system/cfg (was "1" from config-map:kube-system/cfg)`}, r.take())
		a.set(mapsPath, "MODIFIED", mapObject("2"))
		require.Empty(t, r.take(), "an equal value is not reported")
		require.Equal(t, 2, r.count)

		a.event(mapsPath, "BOOKMARK", fields{"apiVersion": "v1", "kind": "ConfigMap", "metadata": fields{"resourceVersion": "150"}})
		a.end(mapsPath)
		time.Sleep(time.Minute)
		require.Empty(t, r.take())
		require.Equal(t, []string{"watch configmaps from 150 at a"}, a.asked(), "a watch that ends resumes without a list")

		a.set(mapsPath, "DELETED", mapObject("2"))
		require.Equal(t, []string{"error: read source config-map:kube-system/cfg: ConfigMap kube-system/cfg: source does not exist"}, r.take())
		a.set(mapsPath, "ADDED", mapObject("2"))
		require.Empty(t, r.take())
		a.set(mapsPath, "MODIFIED", mapObject("3"))
		require.Equal(t, []string{`a = "3" from config-map:kube-system/cfg (was "2" from config-map:kube-system/cfg)`}, r.take())
		require.ErrorIs(t, r.end(), context.Canceled)
	})
}

func TestCFG10_ExpiredVersionsAreListedAnew(t *testing.T) {
	expired := fields{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "too old resource version", "reason": "Expired", "code": 410}
	text, err := json.Marshal(expired)
	require.NoError(t, err)
	for name, expire := range map[string]func(*watchAPI){
		"as an event": func(a *watchAPI) { a.event(mapsPath, "ERROR", expired) },
		"as an answer": func(a *watchAPI) {
			a.mu.Lock()
			a.answer = func(req *http.Request) (*http.Response, error) {
				if req.URL.Query().Get("resourceVersion") == "100" {
					return respond(410, string(text))
				}
				return nil, nil
			}
			a.mu.Unlock()
			a.end(mapsPath)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := serve(map[string]map[string]fields{mapsPath: {"cfg": mapObject("1")}})
				r := a.watch(t, 1)
				r.take()
				a.mu.Lock()
				a.version, a.objects[mapsPath]["cfg"] = 200, mapObject("missed")
				a.mu.Unlock()
				expire(a)
				time.Sleep(time.Minute)
				require.Equal(t, []string{`a = "missed" from config-map:kube-system/cfg (was "1" from config-map:kube-system/cfg)`}, r.take())
				require.Contains(t, a.asked(), "watch configmaps from 200 at a")
				require.ErrorIs(t, r.end(), context.Canceled)
			})
		})
	}
}

// Only a custom resource that is not served waits for its definition.
func TestCFG10_AListThatFailsLaterIsAskedForAgain(t *testing.T) {
	for path, code := range map[string]int{v2Path: 403, nodesPath: 403, mapsPath: 404} {
		synctest.Test(t, func(t *testing.T) {
			a := serve(map[string]map[string]fields{
				mapsPath: {"cfg": mapObject("1")}, nodesPath: {"me": nodeObject("a")}, v2Path: {"x": crObject("x", "a")}, definitionsPath: {},
			})
			start := time.Now()
			a.answer = func(req *http.Request) (*http.Response, error) {
				if since := time.Since(start); req.URL.Path != path || since < time.Minute || since > 2*time.Minute {
					return nil, nil
				}
				return respond(code, map[int]string{403: fmt.Sprintf(status, "Forbidden", code), 404: "page not found"}[code])
			}
			r := a.watch(t, 3)
			time.Sleep(time.Minute)
			require.Len(t, r.take(), 2)
			a.event(path, "ERROR", fields{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410})
			time.Sleep(time.Minute)
			require.Contains(t, strings.Join(r.take(), ""), map[int]string{403: "(grant it by ", 404: "could not find the requested resource"}[code])
			a.asked()
			time.Sleep(5 * time.Minute)
			require.Contains(t, a.asked(), "watch "+short(path)+" from 100 at a")
			require.ErrorIs(t, r.end(), context.Canceled)
		})
	}
}

func TestCFG10_ServerAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := serve(map[string]map[string]fields{mapsPath: {"cfg": mapObject("1")}})
		r := a.watch(t, 1, "http://a", "http://b")
		r.take()
		a.asked()
		a.mu.Lock()
		a.answer = func(req *http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }
		a.mu.Unlock()
		a.end(mapsPath)
		time.Sleep(10 * time.Minute)
		require.Empty(t, r.take(), "no news while the network is cut")
		asked := a.asked()
		require.Contains(t, asked, "watch configmaps from 100 at a")
		require.Contains(t, asked, "watch configmaps from 100 at b")
		require.Less(t, len(asked), 60, "%d", len(asked))

		a.mu.Lock()
		a.answer = nil
		a.mu.Unlock()
		time.Sleep(2 * time.Minute)
		a.set(mapsPath, "MODIFIED", mapObject("2"))
		require.Len(t, r.take(), 1)
		require.ErrorIs(t, r.end(), context.Canceled)
	})
}

func TestCFG10_CustomResourceInstalledLater(t *testing.T) {
	definition := fields{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": fields{"name": "ciliumnodeconfigs.cilium.io"}}
	for name, test := range map[string]struct {
		version string
		watched bool          // whether the definitions are watched
		within  time.Duration // time until the change is noticed
	}{
		v2Path + " and told":        {v2Path, true, 5 * time.Second},
		olderPath + " and told":     {olderPath, true, 5 * time.Second},
		v2Path + " and not told":    {v2Path, false, 3 * time.Minute},
		olderPath + " and not told": {olderPath, false, 3 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := serve(map[string]map[string]fields{mapsPath: {"cfg": mapObject("1")}, nodesPath: {"me": nodeObject("a")}, definitionsPath: {}})
				if !test.watched {
					a.answer = func(req *http.Request) (*http.Response, error) {
						if req.URL.Path == definitionsPath {
							return respond(403, fmt.Sprintf(status, "Forbidden", 403))
						}
						return nil, nil
					}
				}
				r := a.watch(t, 3)
				time.Sleep(time.Minute)
				require.Equal(t, []string{`a = "1" from config-map:kube-system/cfg`}, r.take())
				a.asked()
				if test.watched {
					time.Sleep(24 * time.Hour)
					require.Empty(t, a.asked(), "a resource that is not served is not requested")
				}
				a.mu.Lock()
				object := crObject("x", "a")
				object["apiVersion"] = strings.TrimPrefix(strings.Split(test.version, "/namespaces")[0], "/apis/")
				a.objects[test.version] = map[string]fields{"x": object}
				a.mu.Unlock()
				if test.watched {
					a.set(definitionsPath, "ADDED", definition)
				}
				time.Sleep(test.within)
				require.Equal(t, []string{`b = "x" from cilium-node-config:kube-system/x`}, r.take())
				require.ErrorIs(t, r.end(), context.Canceled)
			})
		})
	}
}

func TestCFG10_WatchDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := serve(map[string]map[string]fields{mapsPath: {"cfg": mapObject("1")}})
		a.answer = func(req *http.Request) (*http.Response, error) {
			if req.URL.Query().Has("watch") {
				return respond(403, fmt.Sprintf(status, "Forbidden", 403))
			}
			return nil, nil
		}
		r := a.watch(t, 1)
		time.Sleep(time.Hour)
		lines := r.take()
		require.Len(t, lines, 2)
		require.Equal(t, `a = "1" from config-map:kube-system/cfg`, lines[0])
		require.Contains(t, lines[1], `error: read source config-map:kube-system/cfg: list and watch configmaps kube-system/cfg: no (grant it by `)
		require.Contains(t, lines[1], `verbs: ["list", "watch"]`)

		a.mu.Lock()
		a.answer = nil
		a.mu.Unlock()
		time.Sleep(5 * time.Minute)
		a.set(mapsPath, "MODIFIED", mapObject("2"))
		require.Equal(t, []string{`a = "2" from config-map:kube-system/cfg (was "1" from config-map:kube-system/cfg)`}, r.take())
		require.ErrorIs(t, r.end(), context.Canceled)
	})
}

// A server that restarts again and again denies a watch each time.
func TestCFG10_WatchDeniedByServersThatStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := serve(map[string]map[string]fields{mapsPath: {"cfg": mapObject("1")}})
		watches := 0
		a.answer = func(req *http.Request) (*http.Response, error) {
			if !req.URL.Query().Has("watch") {
				return nil, nil
			}
			watches++
			switch {
			case watches > 10:
				return nil, nil
			case watches%2 == 0:
				return nil, errors.New("connection refused")
			}
			return respond(403, fmt.Sprintf(status, "Forbidden", 403))
		}
		r := a.watch(t, 1)
		time.Sleep(time.Hour)
		require.Equal(t, []string{`a = "1" from config-map:kube-system/cfg`}, r.take())
		require.ErrorIs(t, r.end(), context.Canceled)
		require.Equal(t, 11, watches)
	})
}
