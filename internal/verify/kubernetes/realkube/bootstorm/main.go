// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command bootstorm lets thousands of nodes resolve their configuration against
// one real API server, and prints what that costs: for this project's clients,
// and for the requests that Cilium's build-config makes.
//
// Each node is a goroutine with a transport and a connection of its own. Nodes
// boot at a steady rate. All of it runs on one machine, so its processors are
// shared by the API server, etcd and the nodes: compare the rows of one table,
// not tables of different machines.
//
//	go run ./realkube/bootstorm                    5,000 nodes, 200 node configs
//	go run ./realkube/bootstorm -run fairness      one of: plain, peer, fairness, outage
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// plan is what the flags say.
type plan struct {
	nodes, nodeConfigs int
	over               time.Duration // all nodes boot
	away               time.Duration // the API server, in the outage
	spread             time.Duration // of the nodes' retries; 0: the default
	wave               float64       // the most that may follow an outage
	manifests          string        // of priority and fairness
	run                []string
}

var scenarios = []string{"plain", "peer", "fairness", "outage"}

func main() {
	p := plan{}
	flag.IntVar(&p.nodes, "nodes", 5000, "how many boot")
	flag.IntVar(&p.nodeConfigs, "crs", 200, "how many node configs there are")
	flag.DurationVar(&p.over, "over", 2*time.Minute, "the time over which they boot")
	flag.DurationVar(&p.away, "away", 20*time.Second, "how long the API server is away in the outage")
	flag.DurationVar(&p.spread, "spread", 0, "over how long nodes that fail together come back (default: that of the package)")
	flag.Float64Var(&p.wave, "wave", 2, "the most requests that may come after an outage, for each before it")
	flag.StringVar(&p.manifests, "manifests", "../../../examples/deploy/priority.yaml", "FlowSchema and PriorityLevelConfiguration")
	run := flag.String("run", strings.Join(scenarios, ","), "what to run")
	flag.Parse()
	p.run = strings.Split(*run, ",")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := p.storm(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bootstorm:", err)
		os.Exit(1)
	}
}

// storm runs the scenarios one after the other on one API server.
func (p plan) storm(ctx context.Context, out io.Writer) error {
	for _, name := range p.run {
		if !slices.Contains(scenarios, name) {
			return fmt.Errorf("unknown scenario %q: known are %s", name, strings.Join(scenarios, ", "))
		}
	}
	c, err := newCluster(ctx, p)
	if err != nil {
		return err
	}
	defer c.server.Close()
	fmt.Fprintf(out, "%d nodes boot over %s, %d node configs, a ConfigMap of 144 keys, Nodes with 50 images\n\n%s\n", p.nodes, p.over, p.nodeConfigs, header)
	for _, name := range p.run {
		r, err := p.scenario(ctx, c, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintln(out, r)
		if r.failed > 0 && name != "peer" {
			return fmt.Errorf("%s: %d nodes have not resolved: %w", name, r.failed, r.err)
		}
		if r.wave > p.wave {
			return fmt.Errorf("%s: the wave is more than %.1f times the steady rate", name, p.wave)
		}
	}
	return nil
}

func (p plan) scenario(ctx context.Context, c *cluster, name string) (*result, error) {
	node := c.resolve
	switch name {
	case "peer":
		node = c.asCilium
	case "fairness":
		if err := c.applyFairness(ctx, p.manifests); err != nil {
			return nil, err
		}
	case "outage":
		if err := c.removeFairness(ctx); err != nil {
			return nil, err
		}
		return c.measureOutage(ctx, p, name, node)
	}
	return c.measure(ctx, p, name, node)
}
