// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/printable"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// The bounds of the journals in a directory. A reader holds the other agents' journals in
// memory, which takes about three times their bytes: 64 MiB in all, with its own.
const (
	maxAgents = 64
	maxAround = 20 << 20 // bytes of the files of other agents
)

// Each agent of the node has a journal of its own, which it alone writes, and reads the
// wishes of the others in theirs. A process that changes the node holds its lock, so the
// other journals do not change meanwhile. In a damaged journal the records before the
// damage count: it stops its own agent only.

// neighbours are the journals of the other agents in the directory, as they were read last.
type neighbours map[string]*log

// claim is an entry of another agent.
type claim struct {
	agent string
	Entry
}

// claims are the entries of other agents about one object, in the order of their turns.
type claims []claim

// lookAround lists the journals of other agents, at the beginning of an operation.
func (j *Journal) lookAround() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	d, err := j.openDir()
	if err != nil {
		return err
	}
	if d == nil {
		j.around = nil
		return nil
	}
	defer d.Close()
	return j.lookAroundIn(d)
}

// lookAroundIn is lookAround in the open directory. It runs before the removal of objects
// that others may need, since agents may have come after the beginning of the operation.
func (j *Journal) lookAroundIn(d *durable.Dir) error {
	found := neighbours{}
	if err := found.list(d, j.options.Agent); err != nil {
		return err
	}
	for agent := range found {
		found[agent] = j.around[agent]
	}
	j.around = found
	return nil
}

// Alone reports whether no other agent had a journal in the directory when the running
// operation began, so that an action that wants very many objects need not name them. It
// reports false, too, if an earlier run was interrupted while it changed an object, since
// the action may now want that to be different.
func (j *Journal) Alone() bool {
	if j == nil {
		return true
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.around) == 0 && (j.log == nil || j.log.entries.begun == 0)
}

func (n neighbours) list(d *durable.Dir, own string) error {
	size := int64(0)
	for name, err := range d.All() {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // an uninstall has just removed it
		}
		if err != nil {
			return fmt.Errorf("look at the state directory: %w", err)
		}
		if agent, isJournal := strings.CutSuffix(name, journalSuffix); isJournal && agent != own && isAgentName(agent) {
			n[agent] = nil
			if info, err := d.Lstat(name); err == nil && info.Mode().IsRegular() && info.Size() <= maxJournal { // else it is not read
				size += info.Size()
			}
		}
	}
	if size > maxAround {
		return fmt.Errorf("%s holds journals of other agents of %d bytes, and at most %d are read: uninstall or release those that have gone", d.Path("."), size, maxAround)
	}
	if len(n) >= maxAgents {
		return fmt.Errorf("%s holds the journals of %d agents, and at most %d are read: release those that have gone", d.Path("."), len(n)+1, maxAgents)
	}
	return nil
}

// read reads the new records of the journals, and reports whether all of them were read
// to their ends.
func (n neighbours) read(d *durable.Dir) (whole bool) { return n.readEach(d) == nil }

// readEach is read, with the error of each journal that was not read to its end.
func (n neighbours) readEach(d *durable.Dir) (damage map[string]error) {
	for agent, was := range n {
		l, err := refreshed(d, agent, was)
		if n[agent] = l; err != nil {
			if damage == nil {
				damage = map[string]error{}
			}
			damage[agent] = err
		}
	}
	return damage
}

// isExhausted reports whether a file was not read for lack of a resource that may soon be
// free again: that is no evidence of damage.
func isExhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// othersOf returns the claims of other agents on objects, by identity.
func (j *Journal) othersOf(identities ...string) (map[string]claims, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.around) == 0 {
		return nil, nil
	}
	d, err := j.openDir()
	if d == nil || err != nil {
		return nil, err
	}
	defer d.Close()
	for agent, err := range j.around.readEach(d) {
		if isExhausted(err) {
			return nil, fmt.Errorf("read the wishes of agent %q: %w", agent, err)
		}
		j.advise("the wishes of agent %q are known only as far as its journal is undamaged: %v", agent, err)
	}
	all := map[string]claims{}
	for _, identity := range identities {
		if all[identity] == nil {
			all[identity] = j.around.claims(identity, j.boot)
		}
	}
	return all, nil
}

// WantedByOthers returns, for each of the identities whose object other agents want, the
// entry of the agent that prevails. It is for handlers that would change such an object
// along with their own.
func (j *Journal) WantedByOthers(identities ...string) (map[string]Entry, error) {
	if j == nil {
		return nil, nil
	}
	others, err := j.othersOf(identities...)
	wanted := map[string]Entry{}
	for identity, claims := range others {
		if top := claims.top(); top != nil {
			wanted[identity] = top.Entry
		}
	}
	return wanted, err
}

// claims lists the entries about an object that count in this boot.
func (n neighbours) claims(identity, boot string) (all claims) {
	for agent, l := range n {
		for e := range l.entries.of(identity) {
			if e.Kept || e.Boot != "" && e.Boot != boot {
				continue
			}
			if e, wants := e.unlessPutBack(); wants {
				all = append(all, claim{agent, e})
			}
		}
	}
	sort.SliceStable(all, func(i, j int) bool {
		a, b := all[i], all[j]
		return cmp.Or(cmp.Compare(a.Turn, b.Turn), a.Time.Compare(b.Time), cmp.Compare(a.agent, b.agent)) < 0
	})
	return all
}

// unlessPutBack handles e of an object that an interrupted undoing has restored, or was
// about to restore: as long as the object may still be as it was made, it is wanted so.
func (e Entry) unlessPutBack() (_ Entry, wants bool) {
	if e.Done || e.Released || !e.After.Same(e.Before) {
		return e, true
	}
	if e.Was == nil || e.Was.Same(e.Before) {
		return e, false
	}
	e.After = *e.Was
	return e, true
}

// wanting returns the claims of agents that want the object.
func (cs claims) wanting() claims {
	return slices.DeleteFunc(slices.Clone(cs), func(c claim) bool { return c.Released })
}

// top is the claim that prevails: a claim that accepts anything blocks none, and hides
// none. Nil: no agent wants the object.
func (cs claims) top() (top *claim) {
	wanting := cs.wanting()
	for i, c := range wanting {
		if top == nil || top.isContent() || !c.isContent() {
			top = &wanting[i]
		}
	}
	return top
}

// isContent reports whether the step accepts an object other than it would make.
func (e Entry) isContent() bool { return e.Any || e.Loose }

// made is the claim of the agent that changed the object first: it has the original. Nil:
// all agents found the object as wanted.
func (cs claims) made() *claim {
	for _, c := range cs.wanting() {
		if !c.Found {
			return &c
		}
	}
	return nil
}

// released is the claim of an agent that changed the object and left it so, since others
// want it.
func (cs claims) released() *claim {
	for _, c := range cs {
		if c.Released && !c.After.Same(c.Before) {
			return &c
		}
	}
	return nil
}

// states are those in which agents that no longer want the object have left it.
func (cs claims) states() (left []State) {
	for _, c := range cs {
		if c.Released {
			left = append(left, c.After, c.before())
			if !c.Done && c.Over != nil { // it may still be as it was found
				left = append(left, *c.Over)
			}
		}
	}
	return left
}

// overridden reports whether now is the state wanted by an agent that e does not agree
// with: the agent that e agrees with was about to override it.
func (cs claims) overridden(e Entry, now State) bool {
	return slices.ContainsFunc(cs, func(c claim) bool { return !c.agrees(e) && c.After.Same(now) })
}

// agrees reports whether e and o want the same state of their object.
func (e Entry) agrees(o Entry) bool {
	a, b := e.After, o.After
	if a.Type != b.Type {
		return false
	}
	if e.isContent() || o.isContent() || a.Type == "dir" || a.Type == "mount" {
		return true
	}
	return a.agrees(b)
}

// agrees reports whether two states that are wanted are the same, as far as both are known.
func (s State) agrees(o State) bool {
	access := s.Mode == 0 || o.Mode == 0 || s.Mode == o.Mode && s.UID == o.UID && s.GID == o.GID // no mode: it is not known
	return access && s.Target == o.Target && slices.Equal(strings.Fields(s.Value), strings.Fields(o.Value)) && mayEqual(s.SHA256, o.SHA256)
}

// mayEqual reports whether two things are equal, as far as both are known.
func mayEqual(a, b string) bool { return a == b || a == "" || b == "" }

// conflict is the error for a claim c that blocks e.
func (c *claim) conflict(e Entry) error {
	return conflict{fmt.Errorf("%s: %w: agent %q has %s, and this one wants %s: uninstall or release that agent, change one of the two, or override it",
		e.Object, ErrConflict, c.agent, c.wish(), e.wish())}
}

// conflict is an error that no step of a plan can resolve.
type conflict struct{ error }

// Certain makes the error a bootstrap.CertainError.
func (conflict) Certain() {}

func (c conflict) Unwrap() error { return c.error }

// wish describes the state that a step wants in a word or two.
func (e Entry) wish() string {
	s := e.After
	switch {
	case s.Type == "":
		return "nothing there"
	case s.Value != "":
		return printable.Masked(e.Object, strings.Join(strings.Fields(s.Value), " "))
	case s.Target != "":
		return "a link to " + s.Target
	case s.SHA256 != "":
		return fmt.Sprintf("a %s of mode %#o and owner %d:%d with the SHA-256 %.12s...", s.Type, s.Mode, s.UID, s.GID, s.SHA256)
	}
	return "a " + s.Type
}

// negotiate completes e, which is about to be begun, with the wishes of other agents for
// its object: the original is the one that they found.
func (j *Journal) negotiate(l *log, e *Entry, others claims) error {
	top := others.top()
	if top == nil {
		return nil
	}
	own, known := l.entries.get(e.id())
	known = known && !j.passed(own)
	found := e.Before
	if made := others.made(); made != nil && !known && !l.hasOther(*e, j.boot) {
		e.Before = made.Before
	}
	switch {
	case top.agrees(*e) && known:
		return nil
	case top.agrees(*e):
		e.Turn = top.Turn + 1
		agreesAsFarAsKnown := e.After.Type == "file" && e.After.SHA256 == ""
		if agreesAsFarAsKnown || others.overridden(*e, found) {
			e.Over = &found
		}
		return nil
	case known && own.Turn > top.Turn && !top.agrees(own) && own.agrees(*e): // it was overridden before
		return nil
	case !j.options.Override:
		return top.conflict(*e)
	}
	e.Turn = top.Turn + 1
	if !known || found.Type != "" { // else the caller has not read it
		e.Over = &found
	}
	return nil
}

// overrides reports whether e is about to override the wish of another agent, for an
// object that the step has left as that agent wants it: the present object must then be
// kept.
func (j *Journal) overrides(own, e Entry) (bool, error) {
	if !j.options.Override || j.Alone() {
		return false, nil
	}
	entries := []Entry{e}
	others, err := j.identify(entries)
	top := others[entries[0].Identity].top()
	return top != nil && top.agrees(own) && !top.agrees(e), err
}

// hasOther reports whether another step of this agent has changed the object of e.
func (l *log) hasOther(e Entry, boot string) bool {
	for own := range l.entries.of(e.Identity) {
		if own.id() != e.id() && !own.Released && !own.Kept && !own.Found && (own.Boot == "" || own.Boot == boot) {
			return true
		}
	}
	return false
}

// leaveVoid removes the journals of uninstalled agents whose entries no other agent needs
// any more.
func (j *Journal) leaveVoid(d *durable.Dir) error {
	if !j.around.read(d) {
		return nil // the wishes are unknown
	}
	var errs []error
	for agent, l := range j.around {
		if l.seen == nil || len(l.owners)+len(l.left)+l.entries.wanted() > 0 || l.entries.len() == 0 || j.around.need(l, j.boot) {
			continue
		}
		if err := errors.Join(d.Remove(agent+reportSuffix), d.Remove(agent+journalSuffix)); err != nil {
			errs = append(errs, fmt.Errorf("remove the journal that agent %q has left: %w", agent, remedy.File(err)))
			continue
		}
		delete(j.around, agent)
	}
	return errors.Join(errs...)
}

// need reports whether an agent wants an object that released has an entry for.
func (n neighbours) need(released *log, boot string) bool {
	for e := range released.entries.all {
		if n.claims(e.Identity, boot).top() != nil {
			return true
		}
	}
	return false
}

// names reports whether one of the journals names kept content, or may.
func (n neighbours) names(d *durable.Dir, blob string) bool {
	if !n.read(d) {
		return true
	}
	for _, l := range n {
		if l.entries.content[blob].entries > 0 {
			return true
		}
	}
	return false
}
