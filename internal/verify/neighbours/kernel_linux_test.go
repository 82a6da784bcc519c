// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package neighbours_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/internal/snapshot"
	"github.com/slipway-dev/slipway/sysctl"
)

// onKernel is a throw-away node with the running kernel, and its agents.
type onKernel struct {
	t     *testing.T
	node  *bootstraptest.Node
	holds map[string]bool // what each agent was told it has
}

var agentsOnKernel = []string{"first", "second", "third"}

// plan is the plan of the agent's next process. The third agent wants another value for one
// key.
func (o onKernel) plan(agent string) *bootstrap.Plan {
	filter := "0" // the value in a new network
	if agent == "third" {
		filter = "2"
	}
	const dir = "/var/agents"
	return &bootstrap.Plan{
		Host: hostns.Host{Proc: o.node.Proc()},
		Journal: &journal.Node{Dir: "/var/slipway-test", Agent: agent, NoOwner: true, Handlers: []journal.Handler{
			hostpath.Handler{}, cgroup.Handler{}, bpffs.Handler{}, sysctl.Handler{},
		}},
		Steps: []bootstrap.Step{
			{Name: "paths", Action: hostpath.Paths{List: []hostpath.Path{{Path: dir + "/run", Type: hostpath.DirectoryOrCreate}}}},
			{Name: "shared", Action: hostpath.Content{Path: dir + "/shared", Bytes: []byte("shared")}, After: []string{"paths"}},
			{Name: "own", Action: hostpath.Content{Path: dir + "/" + agent, Bytes: []byte(agent)}, After: []string{"paths"}},
			{Name: "cgroup", Action: cgroup.Mount{Path: dir + "/run/cgroup"}},
			{Name: "bpffs", Action: bpffs.Mount{Path: dir + "/run/bpf"}},
			{Name: "sysctl", Action: sysctl.Settings{Values: []sysctl.Setting{
				{Key: "net.ipv4.ip_forward", Value: "1"}, {Key: "net.ipv4.conf.lo.rp_filter", Value: filter},
			}}},
		},
	}
}

// apply applies an agent's plan, but ends it before the step named cut.
func (o onKernel) apply(agent, cut string) {
	ctx, cancel := context.WithCancel(o.t.Context())
	defer cancel()
	p := o.plan(agent)
	p.Trace = &bootstrap.Trace{StepStart: func(ctx context.Context, _ bootstrap.Op, step string) context.Context {
		if step == cut {
			cancel()
		}
		return ctx
	}}
	_, err := p.Apply(ctx)
	switch {
	case err == nil:
		o.holds[agent] = true
	case errors.Is(err, journal.ErrConflict), cut != "" && errors.Is(err, context.Canceled):
	default:
		require.NoError(o.t, err)
	}
}

func (o onKernel) uninstall(agent string) {
	_, err := o.plan(agent).RevertAll(o.t.Context())
	require.NoError(o.t, err)
	delete(o.holds, agent)
}

// verify requires that each agent has the state it was told.
func (o onKernel) verify() {
	for agent := range o.holds {
		report, err := o.plan(agent).Check(o.t.Context())
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

// A sample confirms on the kernel what the model finds on the node in memory.
func TestPLAN11_PLAN14_WalksOnTheKernel(t *testing.T) {
	o := onKernel{t, bootstraptest.NewNode(t), map[string]bool{}}
	o.apply("first", "")
	o.uninstall("first") // only the lock stays
	before := o.look()
	seed := uint64(number(t, "SLIPWAY_NEIGHBOURS_SEED", 1, 1))
	for walk := range uint64(number(t, "SLIPWAY_NEIGHBOURS_KERNEL_WALKS", 30, 3)) {
		random := rand.New(rand.NewPCG(seed, walk))
		var done []string
		for range 6 + random.IntN(6) {
			agent := agentsOnKernel[random.IntN(len(agentsOnKernel))]
			switch random.IntN(4) {
			case 0, 1:
				done = append(done, "apply "+agent)
				o.apply(agent, "")
			case 2:
				cut := []string{"shared", "cgroup", "bpffs", "sysctl"}[random.IntN(4)]
				done = append(done, "apply "+agent+" until "+cut)
				o.apply(agent, cut)
			case 3:
				done = append(done, "uninstall "+agent)
				o.uninstall(agent)
			}
			t.Logf("walk %d: %s", walk, done[len(done)-1])
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
