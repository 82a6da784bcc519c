// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package neighbours

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/sysctl"
)

// Paths on a node, below its directory.
const (
	dropIns = "etc/sysctl.d"
	record  = "var/slipway"
)

// site is a node as an agent's process sees it.
type site struct {
	root   string
	naive  bool // each agent has its own directory
	boot   string
	mounts bpffs.Mounter // nil: the running kernel
	files  sysctl.Files  // nil: the running kernel's
	point  func()        // called at each point where the process may be killed
}

func (s *site) path(name string) string { return filepath.Join(s.root, filepath.FromSlash(name)) }

func (s *site) sysctl() sysctl.Kernel { return sysctl.Kernel{Files: s.files} }

// operation is an agent's operation, or a reboot.
type operation struct {
	Agent   int
	Do      string // one of the constants below
	Version int
	Kill    int    // point at which the process is killed, from 1; 0 if it is not
	Owner   string // owner of an apply; empty if none is configured
	Accept  bool   // for an uninstall: a directory with content of others is left
}

const (
	apply     = "apply"
	uninstall = "uninstall"
	release   = "release"
	check     = "check"
	reboot    = "reboot"
)

// outcome is the result of an operation.
type outcome struct {
	Killed   bool
	Err      string
	Conflict bool     // it was refused, since another agent wants another state
	Changes  []string // changes that a check has found
	Records  bool     // the changes concern records only
	Left     []string // objects that a release has left
}

func failed(o outcome, err error) outcome {
	if err == nil {
		return o
	}
	o.Err, o.Conflict = err.Error(), errors.Is(err, journal.ErrConflict)
	return o
}

// do runs op, in a process without knowledge of earlier ones.
func (s *site) do(ctx context.Context, scenario Scenario, op operation) outcome {
	agent := scenario.Agents[op.Agent]
	node := s.node(agent, op)
	plan := &bootstrap.Plan{Host: theHost{}, Journal: node, Trace: &bootstrap.Trace{
		StepDone: func(context.Context, bootstrap.Op, bootstrap.Result) { s.point() },
	}}
	switch op.Do {
	case apply:
		plan.Steps = s.steps(agent, op.Version)
		_, err := plan.Apply(ctx)
		return failed(outcome{}, err)
	case check:
		plan.Steps = s.steps(agent, op.Version)
		report, err := plan.Check(ctx)
		changes, records := changesOf(report)
		return failed(outcome{Changes: changes, Records: records}, err)
	case uninstall:
		_, err := plan.RevertAll(ctx)
		return failed(outcome{}, err)
	case release:
		return s.release(ctx, node)
	}
	return outcome{Err: fmt.Sprintf("unknown operation %q", op.Do)}
}

// node is the agent's journal. A release has no handlers.
func (s *site) node(agent Agent, op operation) *journal.Node {
	n := &journal.Node{Dir: s.path(record), Agent: agent.Name, Owner: op.Owner, NoOwner: op.Owner == "", Boot: s.boot, AnyOwner: true, AcceptKept: op.Accept}
	if s.naive {
		n.Dir += "-" + agent.Name
	}
	if op.Do != release {
		for _, h := range []journal.Handler{
			bpffs.Handler{Kernel: s.mounts}, cgroup.Handler{Kernel: s.mounts}, sysctl.Handler{Kernel: s.sysctl()}, hostpath.Handler{}, published,
			cniinstall.Handler{ConfDir: s.path(confDir)},
		} {
			n.Handlers = append(n.Handlers, handler{h, s.point})
		}
	}
	if op.Do == apply || op.Do == check {
		n.Override = agent.Versions[op.Version].Override
	}
	return n
}

func (s *site) steps(agent Agent, version int) (steps []bootstrap.Step) {
	v := agent.Versions[version]
	for _, name := range agent.steps() {
		if w, wanted := v.Steps[name]; wanted {
			steps = append(steps, bootstrap.Step{Name: name, Action: w.action(s)})
		} else {
			steps = append(steps, bootstrap.Step{Name: name, Absent: true})
		}
	}
	return steps
}

func (s *site) release(ctx context.Context, node *journal.Node) (o outcome) {
	j, err := node.Open(ctx, nil)
	if err != nil {
		return failed(o, err)
	}
	defer j.Close()
	left, err := j.Release(ctx)
	for _, e := range left {
		o.Left = append(o.Left, e.Object)
	}
	return failed(o, err)
}

// changesOf lists the changes that a check has found, and reports whether all of them
// only record sharing between agents.
func changesOf(report *bootstrap.Report) (changes []string, records bool) {
	records = true
	for _, r := range report.Results {
		if slices.Contains([]bootstrap.Status{bootstrap.Unchanged, bootstrap.Skipped}, r.Status) {
			continue
		}
		changes = append(changes, fmt.Sprintf("%s: %s %q", r.Step, r.Status, r.Changes))
		records = records && len(r.Changes) > 0 && !slices.ContainsFunc(r.Changes, func(c string) bool {
			return !strings.HasPrefix(c, "keep ") && !strings.HasPrefix(c, "leave ")
		})
	}
	return changes, records
}

// handler is a handler whose process may be killed before and after it undoes an entry.
type handler struct {
	journal.Handler
	point func()
}

func (h handler) Look(ctx context.Context, p *journal.Pass, e journal.Entry) (journal.Undo, error) {
	u, err := h.Handler.Look(ctx, p, e)
	if run := u.Run; run != nil {
		u.Run = func(ctx context.Context) error {
			h.point()
			err := run(ctx)
			h.point()
			return err
		}
	}
	return u, err
}

// theHost is the node itself. Operations run one at a time there, so its lock is always
// free.
type theHost struct{}

func (theHost) Enter(ctx context.Context, _ []string, f func(context.Context) error) error {
	return f(ctx)
}
func (theHost) IsHere() bool                        { return true }
func (theHost) CheckPlaces(map[string]string) error { return nil }
func (theHost) Lock(context.Context, string, func(string, time.Duration)) (func() error, error) {
	return nil, nil
}
