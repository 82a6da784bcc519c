// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

// result is one row of the table.
type result struct {
	name          string
	nodes, failed int
	err           error // of the last node that failed
	latencies     []time.Duration
	requests      int64
	rejected      int64
	apiserver     time.Duration
	etcd          time.Duration
	cost          realkube.Cost
	wave          float64 // requests a second after an outage, for each before it
	note          string
}

const header = "                nodes failed |   p50 s   p99 s   max s | requests   429s | API ms  etcd ms  etcd reads    kB  (for each node)"

func (r *result) String() string {
	n := float64(r.nodes)
	perNode := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / n }
	line := fmt.Sprintf("%-14s %6d %6d | %7.2f %7.2f %7.2f | %8.2f %6d", r.name, r.nodes, r.failed,
		r.quantile(0.5), r.quantile(0.99), r.quantile(1), float64(r.requests)/n, r.rejected)
	if r.apiserver > 0 {
		line += fmt.Sprintf(" | %6.2f %8.2f %11.2f %5.1f", perNode(r.apiserver), perNode(r.etcd), r.cost.EtcdReads/n, r.cost.Bytes/1000/n)
	}
	return strings.TrimRight(line+"\n"+r.note, "\n")
}

// quantile is in seconds, of the nodes that have resolved.
func (r *result) quantile(q float64) float64 {
	if len(r.latencies) == 0 {
		return 0
	}
	return r.latencies[min(int(q*float64(len(r.latencies))), len(r.latencies)-1)].Seconds()
}

type node func(ctx context.Context, i int, t *traffic) error

// measure lets all nodes boot, and takes what the API server says before and
// after.
func (c *cluster) measure(ctx context.Context, p plan, name string, f node) (*result, error) {
	before, err := c.server.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	apiserver, etcd, err := c.server.CPU()
	if err != nil {
		return nil, err
	}
	r := boot(ctx, p, name, f, &traffic{start: time.Now()})
	apiserver2, etcd2, err := c.server.CPU()
	if err != nil {
		return nil, err
	}
	after, err := c.server.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	r.apiserver, r.etcd, r.cost = apiserver2-apiserver, etcd2-etcd, after.Since(before)
	return r, nil
}

// boot starts the nodes at a steady rate and waits for all of them.
func boot(ctx context.Context, p plan, name string, f node, t *traffic) *result {
	r := &result{name: name, nodes: p.nodes}
	var mu sync.Mutex
	var running sync.WaitGroup
	pace := time.NewTicker(p.over / time.Duration(p.nodes))
	defer pace.Stop()
	for i := range p.nodes {
		<-pace.C
		running.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
			defer cancel()
			start := time.Now()
			err := f(ctx, i, t)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				r.failed++
				r.err = err
				return
			}
			r.latencies = append(r.latencies, time.Since(start))
		})
	}
	running.Wait()
	slices.Sort(r.latencies)
	for i := range t.sent {
		r.requests += t.sent[i].Load()
	}
	r.rejected = t.rejected.Load()
	return r
}

// measureOutage kills the API server after a third of the time, and starts it
// again later. It says how many requests reached the server afterwards, in the
// worst five seconds, for each that did before.
func (c *cluster) measureOutage(ctx context.Context, p plan, name string, f node) (*result, error) {
	t := &traffic{start: time.Now()}
	from := p.over / 3
	back := make(chan error, 1)
	var ready time.Duration
	go func() {
		time.Sleep(from)
		c.server.KillAPIServer()
		time.Sleep(p.away)
		err := c.server.StartAPIServer(ctx)
		ready = time.Since(t.start)
		back <- err
	}()
	r := boot(ctx, p, name, f, t)
	if err := <-back; err != nil {
		return nil, err
	}
	const width = 5
	steady := t.rate(width, int(from.Seconds()))
	worst, at := 0.0, 0
	for second := int((from + p.away).Seconds()); second < int((2 * p.over).Seconds()); second++ {
		if rate := t.rate(second, second+width); rate > worst {
			worst, at = rate, second
		}
	}
	r.wave = worst / steady
	r.note = fmt.Sprintf("  the API server was killed at %.0f s and ready again at %.1f s: %.1f requests/s before, at most %.1f afterwards (5 s from %d s): %.2f times",
		from.Seconds(), ready.Seconds(), steady, worst, at, r.wave)
	return r, nil
}

// rate is the mean of answered requests a second.
func (t *traffic) rate(from, to int) float64 {
	total := int64(0)
	for second := from; second < to; second++ {
		total += t.answered[second].Load()
	}
	return float64(total) / float64(to-from)
}
