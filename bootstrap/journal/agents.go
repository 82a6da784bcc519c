// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// Agent describes an agent of the node by its journal.
type Agent struct {
	// Name is the agent's name: see [Node].Agent.
	Name string

	// Owner is the owner that applied last, Generation the number of this ownership, and
	// Since its beginning. If no named owner has applied, all three are zero.
	Owner      string
	Generation int
	Since      time.Time

	// Seen is the time of the agent's last activity: its last report, the beginning of
	// its newest entry, or its claim of the node, whichever was last. A run that finds
	// nothing to do does not count.
	Seen time.Time

	// Entries is the number of objects that its steps have changed, and Found the number
	// of those that they found as wanted.
	Entries, Found int

	// Alive is the evidence that the owner is alive, as from [Journal.OwnerAlive]. If it
	// is empty, there is none, unless AliveErr explains why it is unknown.
	Alive    string
	AliveErr error

	// Err is the reason why the agent's file was not read to its end, such as damage; nil
	// if it was. With an error, the other fields describe the part that was read.
	Err error
}

// Agents lists the agents that have a journal in n's directory, including n's own, in the
// order of their arrival as far as it is recorded. It includes agents whose first apply
// failed before it changed anything. It excludes agents that were uninstalled or
// released, even if the directory remembers objects that they left. A damaged file is an
// error of that [Agent] only. Like [Node.Open], it enters the host's namespaces by enter,
// which may be nil: those of mounts and cgroups.
func (n *Node) Agents(ctx context.Context, enter Enter) (agents []Agent, err error) {
	if err := n.Validate(); err != nil {
		return nil, err
	}
	if enter == nil {
		enter = here
	}
	err = enter(ctx, []string{"mnt", "cgroup"}, func(ctx context.Context) error {
		j, err := reach(*n, enter)
		if err != nil {
			return err
		}
		agents, err = j.agents(ctx)
		return errors.Join(err, j.Close())
	})
	return agents, err
}

// agents is Agents in the host's namespaces.
func (j *Journal) agents(ctx context.Context) ([]Agent, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	d, err := j.openDir()
	if d == nil || err != nil {
		return nil, err
	}
	defer d.Close()
	all, reported, err := j.names(d)
	if err != nil {
		return nil, err
	}
	known, came := map[string]Agent{}, map[string]time.Time{}
	for name := range all {
		l, damage := refreshed(d, name, nil)
		if damage == nil && len(l.owners)+l.entries.wanted() == 0 && (l.seen != nil || !reported[name]) {
			continue
		}
		a := Agent{Name: name, Entries: l.entries.wanted() - l.entries.found, Found: l.entries.found, Err: damage}
		if a.Seen, err = l.lastSeen(d); err != nil {
			a.Err = errors.Join(a.Err, err)
		}
		current := l.current()
		a.Owner, a.Generation, a.Since = current.Name, current.Generation, current.Since
		a.Alive, a.AliveErr = j.alive(ctx, current)
		known[name], came[name] = a, l.came()
		if came[name].IsZero() {
			came[name] = a.Seen
		}
	}
	names := slices.SortedFunc(maps.Keys(known), func(a, b string) int {
		return cmp.Or(came[a].Compare(came[b]), strings.Compare(a, b))
	})
	agents := make([]Agent, 0, len(names))
	for _, name := range names {
		agents = append(agents, known[name])
	}
	return agents, ctx.Err()
}

// names lists the agents that have a journal or a report, and the journal's own: all of
// them, and those with a report.
func (j *Journal) names(d *durable.Dir) (all neighbours, reported map[string]bool, err error) {
	all, reported = neighbours{j.options.Agent: nil}, map[string]bool{}
	if err := all.list(d, j.options.Agent); err != nil {
		return nil, nil, err
	}
	for name, err := range d.All() {
		if errors.Is(err, fs.ErrNotExist) {
			break // an uninstall has just removed it
		}
		if err != nil {
			return nil, nil, fmt.Errorf("look at the state directory: %w", err)
		}
		if agent, ok := strings.CutSuffix(name, reportSuffix); ok && isAgentName(agent) && len(all) <= maxAgents {
			all[agent], reported[agent] = nil, true
		}
	}
	return all, reported, nil
}

// times yields the times at which owners claimed the node and wanted entries were begun.
func (l *log) times(yield func(time.Time) bool) {
	for _, o := range l.owners {
		if !yield(o.Since) {
			return
		}
	}
	for e := range l.entries.all {
		if !e.Released && !yield(e.Time) {
			return
		}
	}
}

// came is the earliest recorded time.
func (l *log) came() (first time.Time) {
	for t := range l.times {
		if first.IsZero() || t.Before(first) {
			first = t
		}
	}
	return first
}

// lastSeen is the latest time recorded or reported.
func (l *log) lastSeen(d *durable.Dir) (last time.Time, err error) {
	info, err := d.Lstat(l.header.Agent + reportSuffix)
	switch {
	case err == nil:
		last = info.ModTime()
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	default:
		err = fmt.Errorf("look at the last report: %w", remedy.File(err))
	}
	for t := range l.times {
		if t.After(last) {
			last = t
		}
	}
	return last, err
}
