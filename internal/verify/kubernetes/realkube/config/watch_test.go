// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package config_test

import (
	"context"
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/kube"
)

// watching is a Watch in progress.
type watching struct {
	t         *testing.T
	userAgent string
	updates   chan configresolve.Update
	stop      func() error
}

// watchThree watches three sources through the API server's given URL.
func watchThree(t *testing.T, name, url string) *watching {
	t.Helper()
	path, err := server.Kubeconfig(t.TempDir(), watcher, url)
	require.NoError(t, err)
	client, userAgent := connect(t, kube.Connection{Kubeconfig: path})
	w := &watching{t: t, userAgent: userAgent, updates: make(chan configresolve.Update, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	list := sources(t, client, name, name, three...)
	go func() {
		done <- kube.Watch(ctx, configresolve.Resolver{Sources: list}, func(u configresolve.Update) error {
			w.updates <- u
			return nil
		})
	}()
	w.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { require.ErrorIs(t, w.stop(), context.Canceled) })
	return w
}

// next waits for the next report.
func (w *watching) next() configresolve.Update {
	w.t.Helper()
	select {
	case u := <-w.updates:
		return u
	case <-time.After(90 * time.Second):
		stacks := make([]byte, 1<<16)
		w.t.Fatalf("no report\n%s", stacks[:runtime.Stack(stacks, true)])
		panic("unreachable")
	}
}

// expect waits until these changes are reported, in one report or several, not counting
// config-sources.
func (w *watching) expect(lines ...string) configresolve.Update {
	w.t.Helper()
	var got []string
	for {
		u := w.next()
		require.NoError(w.t, u.Err)
		for _, c := range u.Changes {
			if c.Key != "config-sources" {
				got = append(got, c.String())
			}
		}
		if len(got) >= len(lines) {
			require.Equal(w.t, lines, got)
			return u
		}
	}
}

func setUpWatch(t *testing.T, name string) {
	t.Helper()
	createNamespace(t, name)
	createConfigMap(t, name, "cilium-config", values{"a": "cm", "b": "cm"})
	createNodeConfig(t, name, nodeConfig{"x", `{"matchLabels":{"zone":"a"}}`, values{"b": "cr"}})
	createNodeConfig(t, name, nodeConfig{"y", `{"matchLabels":{"zone":"b"}}`, values{"b": "cr-b", "c": "cr-b"}})
	createNode(t, name, values{"zone": "a"}, nil)
}

func TestCFG10_ReportsWhatChangedAndFromWhere(t *testing.T) {
	const name = "watch"
	setUpWatch(t, name)
	w := watchThree(t, name, "")
	first := w.next()
	require.NoError(t, first.Err)
	require.Equal(t, values{"a": "cm", "b": "cr"}, maps.Collect(first.Config.All()))
	require.Len(t, first.Changes, 4)

	configMap, annotate := "/api/v1/namespaces/watch/configmaps/cilium-config", func(v any) {
		merge(t, "/api/v1/nodes/watch", fields{"metadata": fields{"annotations": fields{"config.cilium.io/a": v}}})
	}
	merge(t, configMap, fields{"data": fields{"a": "cm2"}})
	w.expect(`a = "cm2" from config-map:watch/cilium-config (was "cm" from config-map:watch/cilium-config)`)
	annotate("n")
	w.expect(`a = "n" from node:watch (annotations) (was "cm2" from config-map:watch/cilium-config)`)
	merge(t, nodeConfigsPath(v2, name)+"/x", fields{"spec": fields{"defaults": fields{"b": "cr2", "d": "\n"}}})
	w.expect(`b = "cr2" from cilium-node-config:watch/x (was "cr" from cilium-node-config:watch/x)`, `d = "\n" from cilium-node-config:watch/x`)
	createNodeConfig(t, name, nodeConfig{"z", `{}`, values{"b": "z"}})
	w.expect(`b = "z" from cilium-node-config:watch/z (was "cr2" from cilium-node-config:watch/x)`)
	require.NoError(t, server.Admin().Delete(t.Context(), nodeConfigsPath(v2, name)+"/z"))
	w.expect(`b = "cr2" from cilium-node-config:watch/x (was "z" from cilium-node-config:watch/z)`)

	merge(t, "/api/v1/nodes/watch", fields{"metadata": fields{"labels": fields{"zone": "b"}}})
	w.expect(`b = "cr-b" from cilium-node-config:watch/y (was "cr2" from cilium-node-config:watch/x)`,
		`c = "cr-b" from cilium-node-config:watch/y`, `d is no longer set (was "\n" from cilium-node-config:watch/x)`)

	// A change without effect causes no report.
	merge(t, configMap, fields{"metadata": fields{"labels": fields{"x": "y"}}})
	merge(t, configMap, fields{"data": fields{"b": "hidden"}})
	merge(t, "/api/v1/nodes/watch/status", fields{"status": fields{"phase": "Running"}})
	annotate(nil)
	last := w.expect(`a = "cm2" from config-map:watch/cilium-config (was "n" from node:watch (annotations))`)
	require.Equal(t, values{"a": "cm2", "b": "cr-b", "c": "cr-b"}, maps.Collect(last.Config.All()))

	require.ErrorIs(t, w.stop(), context.Canceled)
	requireNoGoroutine(t)
	require.Empty(t, w.updates)
	var lists int
	for _, request := range audited(t, w.userAgent) {
		if strings.HasPrefix(request, "list") {
			lists++
		} else {
			require.True(t, strings.HasPrefix(request, "watch"), request)
		}
	}
	require.Equal(t, 3, lists, "a change costs no request")
}

func requireNoGoroutine(t *testing.T) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	text := string(stacks[:runtime.Stack(stacks, true)])
	for _, stack := range strings.Split(text, "\n\n") {
		require.False(t, strings.Contains(stack, "configresolve/kube.(*feed)") || strings.Contains(stack, "configresolve/kube.Watch"), stack)
	}
}

func TestCFG10_APIServerRestarts(t *testing.T) {
	const name = "watch-restart"
	setUpWatch(t, name)
	w := watchThree(t, name, "")
	w.next()
	for _, o := range []outage{killed, allKilled, killed} {
		o.begin()
		o.end(t)
		value := time.Now().String()
		eventually(t, func(ctx context.Context) error { // until the new server has read its rules
			return server.Admin().Merge(ctx, "/api/v1/namespaces/"+name+"/configmaps/cilium-config", fields{"data": fields{"a": value}})
		})
		u := w.next()
		require.NoError(t, u.Err)
		require.Len(t, u.Changes, 1)
		require.Equal(t, value, u.Changes[0].New.Value)
	}
}
