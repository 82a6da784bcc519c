// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

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
)

// Agent describes an agent that has claims, an owner or a report.
type Agent struct {
	Name       string    `json:"name"`
	Owner      string    `json:"owner,omitempty"` // that applied last; empty: none that has a name
	Generation int       `json:"generation,omitempty"`
	Since      time.Time `json:"since,omitzero"` // of this ownership
	// Seen is when the agent last claimed, wrote or reported. A run that finds nothing to do
	// does not count, unless it reports.
	Seen time.Time `json:"seen,omitzero"`
	// Report is that of its last run, as SaveReport has kept it; nil: there is none.
	Report []byte `json:"-"`
	Ended  int    `json:"ended"` // claims that a reboot has ended, and no run has renewed

	// Alive is the evidence that the owner is alive. Empty: there is none, unless AliveErr
	// says why it is not known.
	Alive    string `json:"alive,omitempty"`
	AliveErr error  `json:"-"`
}

// Agents lists the agents in the order in which they came. Owners are looked for among the
// processes and cgroups that the calling thread sees: they should be the host's. If the
// records cannot be read, the agents are those that have a report.
func (b *Book) Agents(ctx context.Context) (all []Agent, err error) {
	b = b.orAlone()
	s, err := b.load()
	if err != nil {
		s = b.reported()
	}
	first := map[string]int{}
	for name, a := range s.head.Agents {
		current := a.current()
		d := Agent{Name: name, Owner: current.Name, Generation: current.Generation, Since: current.Since, Seen: current.Since, Ended: s.ended[name]}
		d.Alive, d.AliveErr = b.alive(ctx, current)
		report, reported, errReport := b.store.read(reportPrefix+name, maxReport)
		d.Report, err = report, errors.Join(err, errReport)
		first[name] = s.first(&d)
		d.saw(reported)
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b Agent) int {
		return cmp.Or(cmp.Compare(first[a.Name], first[b.Name]), strings.Compare(a.Name, b.Name))
	})
	return all, errors.Join(err, ctx.Err())
}

// reported has the agents with a report, and nothing else.
func (b *Book) reported() *sheet {
	s := newSheet()
	_, _ = b.store.leftovers(func(name string) bool { // the error is that of reading the records, too
		if agent, ok := strings.CutPrefix(name, reportPrefix); ok {
			s.addAgent(agent)
		}
		return false
	})
	return s
}

func (a *Agent) saw(t time.Time) {
	if t.After(a.Seen) {
		a.Seen = t
	}
}

// first is when the first of an agent's objects was recorded.
func (s *sheet) first(a *Agent) (first int) {
	first = s.last + 1
	for _, r := range s.all() {
		if !r.isOf(a.Name) {
			continue
		}
		first = min(first, r.Seq)
		a.saw(r.LeftAt)
	}
	return first
}

// Orphans lists the marked objects that are not recorded here: whose record was lost, or is
// in another directory. It looks for those of the kinds that the book knows.
func (b *Book) Orphans(ctx context.Context) (orphans []Marked, err error) {
	b = b.orAlone()
	s, err := b.load()
	if err != nil {
		return nil, err
	}
	found, _, err := b.find(ctx, s)
	for _, id := range slices.Sorted(maps.Keys(found)) {
		if s.find(id) == nil && !s.damaged[id] && !slices.Contains(s.head.Left, text(id)) {
			orphans = append(orphans, found[id])
		}
	}
	return orphans, err
}

// find lists the marked objects of a place by their IDs, and the spaces of the kinds that find
// such.
func (b *Book) find(ctx context.Context, s *sheet) (found map[string]Marked, spaces map[string]bool, err error) {
	found, spaces = map[string]Marked{}, map[string]bool{}
	for name, k := range b.kinds {
		if k.Find == nil {
			continue
		}
		spaces[s.place.in(k.space())] = true
		marked, errFind := k.Find(ctx)
		err = errors.Join(err, errFind)
		for _, m := range marked {
			m.Kind = name
			found[s.listed(k.id(k.canonical(m.Object)))] = m
		}
	}
	return found, spaces, err
}

// maxReport bounds a report, in bytes: a thousand steps with an error each.
const maxReport = 256 << 10

// SaveReport keeps the report of the agent's last run, in the place of the previous one, or
// that of an undoing of all agents for each that is left. Its content is not interpreted. The
// report of a failed run is kept even if that recorded nothing, but not that of an undoing
// after which nothing is recorded.
func (b *Book) SaveReport(_ context.Context, report []byte) error {
	b = b.orAlone()
	if len(report) > maxReport {
		return fmt.Errorf("keep the report: it has %d bytes, and at most %d are kept", len(report), maxReport)
	}
	s, a, err := b.loadAgent()
	if err != nil {
		return err
	}
	names := []string{b.ledger.Agent}
	switch {
	case b.reverts:
		names = slices.DeleteFunc(b.undoes(s), func(name string) bool { return s.head.Agents[name] == nil })
	case a == nil:
		s.addAgent(b.ledger.Agent)
	}
	for _, name := range names {
		s.head.Agents[name].Reported = true
	}
	if err := b.save(s); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // nothing could be recorded, as the run has said
		}
		return err
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, b.store.write(reportPrefix+name, report))
	}
	return errors.Join(errs...)
}
