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
	// Undoing is when an uninstall was begun that runs, or has not ended well.
	Undoing time.Time `json:"undoing,omitzero"`
	Changed int       `json:"changed"` // objects that its steps want and agents have changed
	Found   int       `json:"found"`   // objects that were found as its steps want them
	Ended   int       `json:"ended"`   // claims that a reboot has ended, and no run has renewed

	// Alive is the evidence that the owner is alive. Empty: there is none, unless AliveErr
	// says why it is not known.
	Alive    string `json:"alive,omitempty"`
	AliveErr error  `json:"-"`
}

// Agents lists the agents in the order in which they came. Owners are looked for among the
// processes and cgroups that the calling thread sees: they should be the host's.
func (b *Book) Agents(ctx context.Context) (all []Agent, err error) {
	if b == nil {
		return nil, nil
	}
	s, err := b.load()
	if err != nil {
		return nil, err
	}
	first := map[string]int{}
	for name, a := range s.head.Agents {
		current := a.current()
		d := Agent{Name: name, Owner: current.Name, Generation: current.Generation, Since: current.Since, Seen: current.Since, Undoing: a.Undoing, Ended: s.ended[name]}
		d.Alive, d.AliveErr = b.alive(ctx, current)
		_, reported, errReport := b.store.report(name)
		err = errors.Join(err, errReport)
		first[name] = s.count(&d)
		d.saw(reported)
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b Agent) int {
		return cmp.Or(cmp.Compare(first[a.Name], first[b.Name]), strings.Compare(a.Name, b.Name))
	})
	return all, errors.Join(err, ctx.Err())
}

func (a *Agent) saw(t time.Time) {
	if t.After(a.Seen) {
		a.Seen = t
	}
}

// count counts an agent's objects, and returns when the first of them was recorded.
func (s *sheet) count(a *Agent) (first int) {
	first = s.last + 1
	for _, r := range s.all() {
		if !slices.ContainsFunc(r.Claims, func(c Claim) bool { return c.Agent == a.Name }) {
			continue
		}
		first = min(first, r.Seq)
		a.saw(r.LeftAt)
		if r.Intent == nil && r.Left.Equal(r.Original) {
			a.Found++
		} else {
			a.Changed++
		}
	}
	return first
}

// Orphans lists the marked objects that are not recorded here: whose record was lost, or is
// in another directory. It looks for those of the kinds that the book knows.
func (b *Book) Orphans(ctx context.Context) (orphans []Marked, err error) {
	if b == nil {
		return nil, nil
	}
	s, err := b.load()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(b.kinds)) {
		k := b.kinds[name]
		if k.Find == nil {
			continue
		}
		found, err := k.Find(ctx)
		errs = append(errs, err)
		for _, m := range found {
			m.Kind = name
			id := k.id(k.canonical(m.Object))
			if s.records[id] == nil && s.unreadable(id) == nil && !slices.Contains(s.head.Left, s.listed(id)) {
				orphans = append(orphans, m)
			}
		}
	}
	return orphans, errors.Join(errs...)
}

// maxReport bounds a report, in bytes: a thousand steps with an error each.
const maxReport = 256 << 10

// SaveReport keeps the report of the agent's last run, in the place of the previous one, or
// that of an undoing of all agents for each that is left. Its content is not interpreted. The
// report of a failed run is kept even if that recorded nothing, but not that of an undoing
// after which nothing is recorded.
func (b *Book) SaveReport(_ context.Context, report []byte) error {
	if b == nil {
		return nil
	}
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
		errs = append(errs, b.store.setReport(name, report))
	}
	return errors.Join(errs...)
}

// LastReport returns the report that SaveReport has kept, and its time. If there is none,
// the time is zero.
func (b *Book) LastReport(context.Context) (report []byte, when time.Time, err error) {
	if b == nil {
		return nil, time.Time{}, nil
	}
	return b.store.report(b.ledger.Agent)
}
