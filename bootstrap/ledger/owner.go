// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/printable"
)

// maxFormer is how many former owners of an agent are remembered.
const maxFormer = 32

// agent is what the head of the file says of one agent. It is there as long as the agent has
// claims, an owner or a report.
type agent struct {
	ID       string    `json:"id"` // drawn with the agent's first record
	Owner    *owner    `json:"owner,omitempty"`
	Former   []string  `json:"former,omitempty"` // owners that were superseded, the last one last
	Undoing  time.Time `json:"undoing,omitzero"` // when an uninstall was begun that has not ended well
	Reported bool      `json:"reported,omitempty"`

	unknown unknown
}

func (a *agent) clone() *agent {
	c := *a
	if a.Owner != nil {
		owner := *a.Owner
		c.Owner = &owner
	}
	c.Former = slices.Clone(a.Former)
	return &c
}

// owner is on whose behalf an agent was applied last.
type owner struct {
	Name       string    `json:"name"`
	Generation int       `json:"generation"`
	Since      time.Time `json:"since"`
	Process    *claimant `json:"process,omitempty"` // nil: the owner is a pod, or the process is not known
}

func (o *owner) String() string {
	return fmt.Sprintf("%q (generation %d, since %s)", o.Name, o.Generation, o.Since.Format(time.RFC3339))
}

// current is the agent's owner, whose generation is 0 if there is none.
func (a *agent) current() owner {
	if a == nil || a.Owner == nil {
		return owner{}
	}
	return *a.Owner
}

// id is drawn with the agent's first record. Empty: there is none.
func (a *agent) id() string {
	if a == nil {
		return ""
	}
	return a.ID
}

// binding is what this process has applied to.
type binding struct {
	id         string // of the agent's records; empty: there were none
	generation int
}

func (b *Book) bind(a *agent) { b.bound.Store(&binding{a.id(), a.current().Generation}) }

func (b *Book) hasApplied() bool { return b.bound.Load() != nil }

// remember notes which files the step claims, in the file as this process has read or left it.
func (b *Book) remember(s *sheet, step string) {
	var ids []string
	for id, r := range s.records {
		if strings.HasPrefix(id, pathSpace+" ") && r.claim(b.ledger.Agent, step) != nil {
			ids = append(ids, id)
		}
	}
	if b.place == (place{}) {
		b.known.Store(step, ids)
	}
}

// lost returns a file that a step has claimed, as this process knows it, and that another
// process has undone since. Empty: there is none.
func (b *Book) lost(s *sheet) (id string) {
	b.known.Range(func(step, ids any) bool {
		for _, known := range ids.([]string) {
			if r := s.records[known]; (r == nil || r.claim(b.ledger.Agent, step.(string)) == nil) && s.unreadable(known) == nil {
				id = known
			}
		}
		return id == ""
	})
	return id
}

// revoked returns the reason why a process that has applied before may not apply again.
func (b *Book) revoked(s *sheet, a *agent) error {
	bound, current := b.bound.Load(), a.current()
	switch lost := b.lost(s); {
	case bound == nil:
		return nil
	case bound.id != "" && a.id() == "":
		return fmt.Errorf("%w: it was uninstalled", ErrRevoked)
	case bound.id != "" && a.id() != bound.id && current.Generation == 0:
		return fmt.Errorf("%w: it was uninstalled, and others have applied since", ErrRevoked)
	case bound.id != "" && a.id() != bound.id, current.Generation != bound.generation:
		return fmt.Errorf("%w: %w: %s; nothing is changed", ErrRevoked, ErrNotOwner, &current)
	case a != nil && !a.Undoing.IsZero():
		return fmt.Errorf("%w: an uninstall was begun at %s", ErrRevoked, a.Undoing.Format(time.RFC3339))
	case lost != "":
		return fmt.Errorf("%w: another process has undone %s", ErrRevoked, printable.Line(lost))
	}
	return nil
}

// join has a process that claims nothing count as one that has applied, if another one of its
// owner has.
func (b *Book) join(s *sheet, a *agent) error {
	if a == nil || !s.claiming()[b.ledger.Agent] {
		return fmt.Errorf("%s: agent %q: %w", b.ledger.Dir, b.ledger.Agent, ErrNotApplied)
	}
	err := b.allowed(a)
	if err == nil {
		b.bind(a)
	}
	return err
}

// loadAgent returns the file's records, and what it says of the book's agent. Nil: nothing.
func (b *Book) loadAgent() (*sheet, *agent, error) {
	s, err := b.load()
	if err != nil {
		return nil, nil, err
	}
	return s, s.head.Agents[b.ledger.Agent], nil
}

// MayApply returns the error that Claim would return. It changes nothing and needs no lock.
func (b *Book) MayApply(context.Context) error {
	b = b.orAlone()
	s, a, err := b.loadAgent()
	if err == nil {
		err = b.store.writable()
	}
	if err != nil {
		return err
	}
	return b.mayApply(s, a)
}

// mayApply returns an error if the owner was superseded.
func (b *Book) mayApply(s *sheet, a *agent) error {
	if b.ledger.RepairOnly && !b.hasApplied() {
		if err := b.join(s, a); err != nil {
			return err
		}
	}
	if b.hasApplied() {
		return b.revoked(s, a)
	}
	who, current := b.ledger.Owner, a.current()
	if who == "" || who == current.Name || b.ledger.TakeOver || a == nil || !slices.Contains(a.Former, who) {
		return nil
	}
	return fmt.Errorf("%w: %s, after %q; nothing is changed (take it over explicitly if that is meant)", ErrNotOwner, &current, who)
}

// Claim gives the agent to the ledger's owner, the first time that this process calls it.
// Later it only verifies that the agent still is that owner's. A new owner supersedes the
// previous one, for good. The caller holds the node's lock.
//
// The error matches [ErrNotOwner] if the owner was superseded, and [ErrRevoked] if this
// process has claimed before, and the agent was uninstalled or taken over since.
func (b *Book) Claim(context.Context) error {
	b = b.orAlone()
	s, a, err := b.loadAgent()
	if err == nil {
		err = b.mayApply(s, a)
	}
	if err != nil {
		return err
	}
	b.reverts = false
	if b.hasApplied() {
		return b.save(s) // which removes what killed runs have left
	}
	a = b.claimFor(s, a)
	err = b.save(s)
	if err == nil {
		b.bind(a)
	}
	return err
}

// claimFor records the owner, and that an uninstall that was cut short does not go on.
func (b *Book) claimFor(s *sheet, a *agent) *agent {
	if a != nil {
		a.Undoing = time.Time{}
	}
	who, current := b.ledger.Owner, a.current()
	switch {
	case who == "":
		return a
	case who == current.Name:
		a.Owner.Process = cmp.Or(b.process, current.Process)
		return a
	case a == nil:
		a = s.addAgent(b.ledger.Agent)
	}
	a.Former = slices.DeleteFunc(append(a.Former, current.Name), func(o string) bool { return o == "" || o == who })
	a.Former = a.Former[max(0, len(a.Former)-maxFormer):]
	a.Owner = &owner{who, current.Generation + 1, time.Now().UTC().Truncate(time.Second), b.process}
	return a
}

// NeedsClaim reports whether Claim would record something, or remove what killed runs have
// left. If not, this process counts as having claimed. The lines of damaged records stay until
// something is recorded.
func (b *Book) NeedsClaim(context.Context) (bool, error) {
	b = b.orAlone()
	s, a, err := b.loadAgent()
	if err != nil {
		return false, err
	}
	_, before, err := b.changed(s)
	if err == nil && !b.hasApplied() {
		b.claimFor(s, a)
	}
	_, after, errAfter := b.changed(s)
	if err := errors.Join(err, errAfter); err != nil || string(after) != string(before) {
		return err == nil, err
	}
	leftovers, err := b.store.leftovers(s.obsolete())
	if err == nil && !leftovers && !b.hasApplied() {
		b.bind(a)
	}
	return leftovers, err
}

// MayUndo returns an error if this process may not undo the agent's steps, since that has
// another owner, or one of the agents, if all are meant, or as Ledger.MayUndo says.
func (b *Book) MayUndo(ctx context.Context) error {
	b = b.orAlone()
	s, err := b.load()
	if err != nil {
		return err
	}
	b.reverts = true
	var errs []error
	if b.ledger.MayUndo != nil {
		errs = append(errs, b.ledger.MayUndo(ctx))
	}
	if b.ledger.AnyOwner {
		return errors.Join(errs...)
	}
	for _, name := range b.undoes(s) {
		if err := b.allowed(s.head.Agents[name]); err != nil {
			errs = append(errs, fmt.Errorf("agent %q: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// allowed returns an error unless the agent has no owner, or this one.
func (b *Book) allowed(a *agent) error {
	who, current := b.ledger.Owner, a.current()
	if current.Generation == 0 || current.Name == who {
		return nil
	}
	if who == "" {
		return fmt.Errorf("%w: %s, and no owner is configured; nothing is changed (configure the owner, or allow any owner)", ErrNotOwner, &current)
	}
	return fmt.Errorf("%w: %s, and this is %q; nothing is changed", ErrNotOwner, &current, who)
}

// rival returns an error if the step would take from a living agent of the same name what that has
// applied. It may be superseded by now: by the step of another plan, which has nothing to tell it by.
// Where it cannot be told whether that lives, it may, and its pods would lose their network.
func (b *Book) rival(ctx context.Context, s *sheet, step string, wants Wants) error {
	a := s.head.Agents[b.ledger.Agent]
	if wants.Rival == nil || b.ledger.TakeOver || a == nil {
		return nil
	}
	owners := []owner{a.current()}
	for _, name := range slices.Backward(a.Former) {
		owners = append(owners, owner{Name: name})
	}
	owners = slices.DeleteFunc(owners, func(o owner) bool { return o.Name == b.ledger.Owner || o.Name == "" })
	if len(owners) == 0 {
		return nil
	}
	var recorded []Record
	for _, r := range s.sorted() {
		if r.claim(b.ledger.Agent, step) != nil {
			recorded = append(recorded, b.described(r))
		}
	}
	why := wants.Rival(recorded)
	if why == "" {
		return nil
	}
	for _, o := range owners {
		seen, err := b.alive(ctx, o)
		if err != nil {
			seen = fmt.Sprintf("whether it is alive is not known: %v", err)
		}
		if seen != "" {
			return failure.Certain(fmt.Errorf("%w: %q: %w: %q; %s; %s; nothing is changed (give one of the two a name of its own, or undo the other first; if it is the same agent, take it over explicitly)",
				errTwoAgents, b.ledger.Agent, ErrNotOwner, o.Name, seen, why))
		}
	}
	return nil
}

// Owner returns the agent's owner and the generation of the ownership, which each new owner
// raises by one. Without an owner, the generation is 0.
func (b *Book) Owner() (name string, generation int, err error) {
	b = b.orAlone()
	_, a, err := b.loadAgent()
	return a.current().Name, a.current().Generation, err
}

// addAgent adds an agent, whose records get an ID: one that was uninstalled and comes again
// has another.
func (s *sheet) addAgent(name string) *agent {
	a := &agent{ID: strings.ToLower(rand.Text())}
	s.head.Agents[name] = a
	return a
}

// tidyAgents adds the agents that have claims, and drops those that have nothing.
func (s *sheet) tidyAgents() {
	claiming := s.claiming()
	for name := range claiming {
		if s.head.Agents[name] == nil {
			s.addAgent(name)
		}
	}
	for name, a := range s.head.Agents {
		if !claiming[name] && a.Owner == nil && !a.Reported {
			delete(s.head.Agents, name)
		}
	}
}

// claiming lists the agents that have claims.
func (s *sheet) claiming() map[string]bool {
	all := map[string]bool{}
	for _, r := range s.all() {
		for _, c := range r.Claims {
			all[c.Agent] = true
		}
	}
	return all
}

// MarshalJSON writes the fields of a later version too.
func (a *agent) MarshalJSON() ([]byte, error) {
	type plain agent
	return marshal(plain(*a), a.unknown)
}

// UnmarshalJSON keeps the fields of a later version.
func (a *agent) UnmarshalJSON(raw []byte) error {
	type plain agent
	return unmarshal(raw, (*plain)(a), &a.unknown)
}
