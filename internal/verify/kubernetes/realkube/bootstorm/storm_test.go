// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package bootstorm lets thousands of nodes resolve their configuration against one real API
// server, and measures the cost: for this project's clients, and for the requests that Cilium's
// build-config makes.
//
// Each node is a goroutine with its own transport and connection. Nodes boot at a steady rate.
// The API server, etcd and the nodes share one machine's processors.
package bootstorm

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/bench"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

// A small storm shows that all parts work: every node resolves, also under priority and
// fairness, and across a kill of the API server.
func TestStorm(t *testing.T) {
	c := newCluster(t, plan{nodes: 200, nodeConfigs: 50, over: 8 * time.Second, away: 2 * time.Second, spread: 4 * time.Second})
	resolved := func(r result) result {
		t.Helper()
		require.NoError(t, r.err)
		require.Len(t, r.latencies, c.nodes)
		return r
	}
	r := resolved(c.measure(t, c.resolve))
	require.InDelta(t, 3, r.requests/r.nodes, 0.99)
	require.InDelta(t, 8, c.measure(t, c.asCilium).requests/r.nodes, 0.99)
	c.withFairness(t, func() { r = resolved(c.measure(t, c.resolve)) })
	require.InDelta(t, 3, r.requests/r.nodes, 0.99)
	r, _ = c.outage(t)
	resolved(r)
}

func BenchmarkStorm(b *testing.B) {
	c := newCluster(b, plan{nodes: 5000, nodeConfigs: 200, over: 2 * time.Minute, away: 20 * time.Second})
	b.Run("beside-cilium", func(b *testing.B) {
		m := bench.Measured{}
		for b.Loop() {
			c.measure(b, c.resolve).add(b, m, bench.Ours)
			c.measure(b, c.asCilium).add(b, m, "cilium")
		}
		m.Report(b)
	})
	b.Run("fairness", func(b *testing.B) {
		m := bench.Measured{}
		for b.Loop() {
			c.withFairness(b, func() { c.measure(b, c.resolve).add(b, m, bench.Ours) })
		}
		m.Report(b)
	})
	// The wave is the request rate in the worst five seconds after an outage, relative to the
	// rate before it.
	b.Run("outage", func(b *testing.B) {
		m := bench.Measured{}
		for b.Loop() {
			r, wave := c.outage(b)
			r.add(b, m, bench.Ours)
			m.Add(bench.Ours, "wave", wave)
			require.Less(b, wave, 2.0)
		}
		m.Report(b)
	})
}

// result is the cost of a storm.
type result struct {
	nodes     float64
	latencies []time.Duration // of the nodes that resolved, sorted
	err       error           // of the last node that did not
	requests  float64
	rejected  float64
	apiserver time.Duration
	etcd      time.Duration
	cost      realkube.Cost
}

// add adds the result to the measurements. Every node of ours must resolve.
func (r result) add(b *testing.B, m bench.Measured, who string) {
	if who == bench.Ours {
		require.NoError(b, r.err)
	}
	m.Add(who, "failed", r.nodes-float64(len(r.latencies)))
	m.Add(who, "p50-s", r.quantile(0.5))
	m.Add(who, "p99-s", r.quantile(0.99))
	m.Add(who, "max-s", r.quantile(1))
	m.Add(who, "requests/node", r.requests/r.nodes)
	m.Add(who, "429s", r.rejected)
	if r.apiserver > 0 {
		m.Add(who, "API-ms/node", r.apiserver.Seconds()*1000/r.nodes)
		m.Add(who, "etcd-ms/node", r.etcd.Seconds()*1000/r.nodes)
		m.Add(who, "etcd-reads/node", r.cost.EtcdReads/r.nodes)
		m.Add(who, "kB/node", r.cost.Bytes/1000/r.nodes)
	}
}

// quantile returns seconds.
func (r result) quantile(q float64) float64 {
	if len(r.latencies) == 0 {
		return 0
	}
	return r.latencies[min(int(q*float64(len(r.latencies))), len(r.latencies)-1)].Seconds()
}

type node func(ctx context.Context, i int, t *traffic) error

// measure boots all nodes, and reads the API server's metrics before and after.
func (c *cluster) measure(tb testing.TB, f node) result {
	tb.Helper()
	before, err := c.server.Metrics(tb.Context())
	require.NoError(tb, err)
	apiserver, etcd, err := c.server.CPU()
	require.NoError(tb, err)
	r := c.boot(tb.Context(), f, &traffic{start: time.Now()})
	r.apiserver, r.etcd, err = c.server.CPU()
	require.NoError(tb, err)
	after, err := c.server.Metrics(tb.Context())
	require.NoError(tb, err)
	r.apiserver, r.etcd, r.cost = r.apiserver-apiserver, r.etcd-etcd, after.Since(before)
	return r
}

// boot starts the nodes at a steady rate and waits for all of them.
func (c *cluster) boot(ctx context.Context, f node, t *traffic) result {
	r := result{nodes: float64(c.nodes)}
	var mu sync.Mutex
	var running sync.WaitGroup
	pace := time.NewTicker(c.over / time.Duration(c.nodes))
	defer pace.Stop()
	for i := range c.nodes {
		<-pace.C
		running.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
			defer cancel()
			start := time.Now()
			err := f(ctx, i, t)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				r.err = err
				return
			}
			r.latencies = append(r.latencies, time.Since(start))
		})
	}
	running.Wait()
	slices.Sort(r.latencies)
	for i := range t.sent {
		r.requests += float64(t.sent[i].Load())
	}
	r.rejected = float64(t.rejected.Load())
	return r
}

// outage kills the API server after a third of the time and restarts it later. The wave is the
// rate of answered requests in the worst five seconds afterwards, relative to the rate before.
func (c *cluster) outage(tb testing.TB) (r result, wave float64) {
	tb.Helper()
	t := &traffic{start: time.Now()}
	from := c.over / 3
	back := make(chan error, 1)
	var ready time.Duration
	go func() {
		time.Sleep(from)
		c.server.KillAPIServer()
		time.Sleep(c.away)
		err := c.server.StartAPIServer(context.WithoutCancel(tb.Context()))
		ready = time.Since(t.start)
		back <- err
	}()
	r = c.boot(tb.Context(), c.resolve, t)
	require.NoError(tb, <-back)
	const width = 5
	steady, worst, at := t.rate(width, int(from.Seconds())), 0.0, 0
	for second := int((from + c.away).Seconds()); second < int((2 * c.over).Seconds()); second++ {
		if rate := t.rate(second, second+width); rate > worst {
			worst, at = rate, second
		}
	}
	tb.Logf("the API server was killed at %.0f s and ready again at %.1f s: %.1f requests/s before, at most %.1f afterwards (5 s from %d s)",
		from.Seconds(), ready.Seconds(), steady, worst, at)
	return r, worst / steady
}

// rate is the mean number of answered requests per second.
func (t *traffic) rate(from, to int) float64 {
	total := int64(0)
	for second := from; second < to; second++ {
		total += t.answered[second].Load()
	}
	return float64(total) / float64(to-from)
}
