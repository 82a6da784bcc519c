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

// Agent is an agent of the node, as its journal has it.
type Agent struct {
	// Name is the agent's: see [Node].Agent.
	Name string

	// Owner is on whose behalf it applied last, Generation that of this ownership, and
	// Since when it began. If nobody in particular has applied, all three are zero.
	Owner      string
	Generation int
	Since      time.Time

	// Seen is when the agent last did something: when it kept its last report, began
	// its newest entry or claimed the node, whichever was last. A run that finds nothing
	// to do is not seen.
	Seen time.Time

	// Entries is the number of objects that its steps have changed, and Found of those that
	// they want as they have found them.
	Entries, Found int

	// Alive says what shows that the owner is alive, as [Journal.OwnerAlive] does. If it
	// is empty, nothing does, unless AliveErr says why that cannot be told.
	Alive    string
	AliveErr error

	// Err says why the agent's file was not read to its end, such as that it is damaged.
	// The other fields then are what it says before that. Nil if it was.
	Err error
}

// Agents lists the agents that have a journal in n's directory, n's own among them, in the
// order in which they came, as far as that is recorded; so does one whose first apply has
// failed before it changed anything. An agent that was uninstalled or
// released is not among them, even if something is remembered of what it has left. A
// damaged file is that [Agent]'s error and no other's. Like [Node.Open], it enters the
// host's namespaces by enter, which may be nil: those of mounts and cgroups.
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
// them, and those that have reported.
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

// times yields when owners have claimed the node and wanted entries were begun.
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

// came is the earliest of what is recorded.
func (l *log) came() (first time.Time) {
	for t := range l.times {
		if first.IsZero() || t.Before(first) {
			first = t
		}
	}
	return first
}

// lastSeen is the latest of what is recorded, and reported.
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
