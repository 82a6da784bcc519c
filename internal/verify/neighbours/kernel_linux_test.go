// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package neighbours_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/internal/snapshot"
	"github.com/slipway-dev/slipway/sysctl"
)

// onKernel is a throw-away node with the running kernel, and its agents.
type onKernel struct {
	t     *testing.T
	node  *bootstraptest.Node
	holds map[string]int // the versions that agents were told they have
}

var agentsOnKernel = []string{"first", "second", "third"}

// filter is the value that an agent wants for one key: the third agent another one than the
// others, for which it is the value in a new network.
func filter(agent string) string {
	if agent == "third" {
		return "2"
	}
	return "0"
}

// plan is the plan of the agent's next process. A later version of an agent has another
// content, and one file less.
func (o onKernel) plan(agent string, version int) *bootstrap.Plan {
	const dir = "/var/agents"
	return &bootstrap.Plan{
		Host:   hostns.Host{Proc: o.node.Proc()},
		Ledger: &ledger.Ledger{Dir: "/var/slipway-test", Agent: agent, NoOwner: true},
		Steps: []bootstrap.Step{
			{Name: "paths", Wants: hostpath.Paths{{Path: dir + "/run", Type: "DirectoryOrCreate"}}},
			{Name: "shared", Wants: hostpath.Content{Path: dir + "/shared", Bytes: []byte("shared")}, After: []string{"paths"}, Absent: version > 1},
			{Name: "own", Wants: hostpath.Content{Path: dir + "/" + agent, Bytes: fmt.Append(nil, agent, version)}, After: []string{"paths"}},
			{Name: "cgroup", Wants: cgroup.Mount{Path: dir + "/run/cgroup"}},
			{Name: "bpffs", Wants: bpffs.Mount{Path: dir + "/run/bpf"}},
			{Name: "sysctl", Wants: sysctl.Settings{Values: []sysctl.Setting{
				{Key: "net.ipv4.ip_forward", Value: "1"}, {Key: "net.ipv4.conf.lo.rp_filter", Value: filter(agent)},
			}}},
		},
	}
}

// apply applies a version of the agent's plan, but ends it before the step named cut. A step
// named override makes it prevail over other agents.
func (o onKernel) apply(agent string, version int, cut string) {
	ctx, cancel := context.WithCancel(o.t.Context())
	defer cancel()
	p := o.plan(agent, version)
	p.Ledger.Override = cut == override
	p.Trace = &bootstrap.Trace{StepStart: func(ctx context.Context, _ string, step string) context.Context {
		if step == cut {
			cancel()
		}
		return ctx
	}}
	switch _, err := p.Apply(ctx); {
	case err == nil:
		for other := range o.holds {
			if cut == override && filter(other) != filter(agent) {
				delete(o.holds, other)
			}
		}
		o.holds[agent] = version
	case errors.Is(err, context.Canceled) && cut != "":
		delete(o.holds, agent) // some of it may be another version's
	default:
		require.ErrorIs(o.t, err, ledger.ErrConflict)
	}
}

const override = "override"

func (o onKernel) uninstall(agent string) {
	_, err := o.plan(agent, 1).Uninstall(o.t.Context())
	require.NoError(o.t, err)
	delete(o.holds, agent)
}

// verify requires that each agent has the state it was told.
func (o onKernel) verify() {
	for agent, version := range o.holds {
		report, err := o.plan(agent, version).Check(o.t.Context())
		require.NoError(o.t, err, agent)
		for _, r := range report.Results {
			require.Equal(o.t, bootstrap.Unchanged, r.Status, "%s: %s: %v", agent, r.Step, r.Changes)
		}
	}
}

func (o onKernel) look() snapshot.Snapshot {
	s := snapshot.Snapshot{}
	require.NoError(o.t, o.node.Do(o.t.Context(), func(context.Context) error { return s.Node() }))
	s.DropMoving()
	return s
}

// Agents of a node apply versions of their plans, are cut short, override each other and are
// uninstalled, in random order: each has what it was told it has, and in the end the node is
// as before. SLIPWAY_NEIGHBOURS_WALKS and SLIPWAY_NEIGHBOURS_SEED give more walks, and others.
func TestPLAN11_PLAN14_WalksOnTheKernel(t *testing.T) {
	o := onKernel{t, bootstraptest.NewNode(t), map[string]int{}}
	o.apply("first", 1, "")
	o.uninstall("first") // only the lock stays
	before := o.look()
	seed := uint64(number(t, "SLIPWAY_NEIGHBOURS_SEED", 1, 1))
	for walk := range uint64(number(t, "SLIPWAY_NEIGHBOURS_WALKS", 40, 3)) {
		random := rand.New(rand.NewPCG(seed, walk))
		var done []string
		for range 6 + random.IntN(6) {
			agent, version := agentsOnKernel[random.IntN(len(agentsOnKernel))], 1+random.IntN(2)
			cut := []string{"", "", "shared", "cgroup", "bpffs", "sysctl", override, "uninstall"}[random.IntN(8)]
			done = append(done, fmt.Sprint(agent, " v", version, " ", cut))
			t.Logf("walk %d: %s", walk, done[len(done)-1])
			if cut == "uninstall" {
				o.uninstall(agent)
			} else {
				o.apply(agent, version, cut)
			}
			o.verify()
		}
		left := slices.Clone(agentsOnKernel)
		random.Shuffle(len(left), func(i, k int) { left[i], left[k] = left[k], left[i] })
		for _, agent := range left {
			o.uninstall(agent)
			o.verify()
		}
		require.Empty(t, before.Diff(o.look()), "walk %d: %v, then uninstalled: %v", walk, done, left)
	}
}

// number is a number from the environment, or else a default, with -short another one.
func number(t *testing.T, name string, otherwise, short int) int {
	t.Helper()
	text := os.Getenv(name)
	switch {
	case text == "" && testing.Short():
		return short
	case text == "":
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return n
}
