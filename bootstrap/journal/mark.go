// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
)

// Mark is the information that an object itself carries, if it can: the agent that made
// it, and the journal that records it. For objects of older builds both are empty.
type Mark struct {
	Agent   string // [Node].Agent
	Journal string // drawn when the journal is made, of lower-case letters and digits; empty if Marked.Dir has it
}

// Marked is an object on the node that has a mark.
type Marked struct {
	Mark
	Kind   string // as that of the entry that records it
	Object string // likewise
	Value  string // as that of the entry's After; empty if the object alone identifies it
	Dir    string // the journal's directory, if the object names it
	Remove string // the command that removes it
}

// Finder is a [Handler] that finds objects by their marks, recorded or not.
type Finder interface {
	Handler
	Find(ctx context.Context) ([]Marked, error)
}

// findBy makes the handler find its objects, in their namespaces.
func (j *Journal) findBy(ctx context.Context, f Finder) (found []Marked, err error) {
	err = j.enter(ctx, f.Namespaces(), func(ctx context.Context) (err error) {
		found, err = f.Find(ctx)
		return err
	})
	return found, err
}

func newID() string { return strings.ToLower(rand.Text()) }

// Mark returns the mark of objects that this journal records, even before the first.
func (j *Journal) Mark() (Mark, error) {
	if j == nil {
		return Mark{}, nil
	}
	p, err := j.head()
	if err != nil {
		return Mark{}, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return Mark{j.options.Agent, strings.ToLower(cmp.Or(p.ID, j.next))}, nil
}

// Orphans lists the objects on the node with the mark of this journal's agent, or of
// none, that are neither recorded in this journal nor left for good. Another journal may
// have recorded them: in another directory, or in this one before it was lost. The
// handlers that are a [Finder] find them.
func (j *Journal) Orphans(ctx context.Context) (orphans []Marked, err error) {
	if j == nil {
		return nil, errNoJournal
	}
	p, err := j.load()
	if err == nil {
		_, err = j.wantedByOthers(p)
	}
	if err != nil {
		return nil, err
	}
	return j.findAll(ctx, func(m Marked) bool {
		return (m.Agent == "" || m.Agent == j.options.Agent) && !p.knows(m) && !j.othersKnow(m)
	})
}

// findAll makes the handlers find the marked objects that f counts, each listed once.
func (j *Journal) findAll(ctx context.Context, f func(Marked) bool) (counted []Marked, err error) {
	var errs []error
	for _, h := range j.options.Handlers {
		finder, ok := h.(Finder)
		if !ok {
			continue
		}
		found, err := j.findBy(ctx, finder)
		errs = append(errs, err)
		for _, m := range found {
			if f(m) && !slices.ContainsFunc(counted, m.same) {
				counted = append(counted, m)
			}
		}
	}
	return counted, errors.Join(errs...)
}

// Orphans lists the objects on the node with the mark of an agent, or of none, that no
// readable journal in n's directory has recorded or left for good: see [Journal.Orphans].
// Of an agent whose file is damaged, so that nothing can be undone by it, it lists all.
// It changes nothing, and enters the host's namespaces by enter, which may be nil.
func (n *Node) Orphans(ctx context.Context, enter Enter) (orphans []Marked, err error) {
	if err := n.Validate(); err != nil {
		return nil, err
	}
	if enter == nil {
		enter = here
	}
	var j *Journal
	var known []*page
	err = enter(ctx, []string{"mnt"}, func(context.Context) (err error) {
		if j, err = reach(*n, enter); err == nil {
			known, err = j.readable()
		}
		return err
	})
	if j != nil {
		defer func() { err = errors.Join(err, j.Close()) }()
	}
	if err != nil {
		return nil, err
	}
	return j.findAll(ctx, func(m Marked) bool {
		return !slices.ContainsFunc(known, func(p *page) bool { return p.knows(m) })
	})
}

// readable reads the journals of all agents in the directory that are not damaged.
func (j *Journal) readable() (known []*page, err error) {
	d, err := j.openDir()
	if d == nil || err != nil {
		return nil, err
	}
	defer d.Close()
	all, _, err := j.names(d)
	for agent := range all {
		if l, err := refreshed(d, agent, nil); err == nil {
			known = append(known, l.page())
		}
	}
	return known, err
}

// othersKnow reports whether another agent has the object recorded, since it wants it too.
func (j *Journal) othersKnow(m Marked) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range j.around {
		if l != nil && l.page().knows(m) {
			return true
		}
	}
	return false
}

// Knows reports whether the object is recorded in the journal, or left for good.
func (j *Journal) Knows(m Marked) (bool, error) {
	if j == nil {
		return false, nil
	}
	p, err := j.load()
	return err == nil && p.knows(m), err
}

// same reports whether two found objects are one, such as a mount found twice.
func (m Marked) same(o Marked) bool { return m.Kind == o.Kind && m.is(o.Object, o.Value) }

func (m Marked) is(object, value string) bool {
	return m.Object == object || m.Value != "" && m.Value == value
}

// knows reports whether the object is recorded, or left for good.
func (p *page) knows(m Marked) bool {
	return slices.ContainsFunc(p.Entries, func(e Entry) bool {
		return e.Kind == m.Kind && (m.is(e.Object, e.After.Value) || e.Was != nil && m.is(e.Object, e.Was.Value))
	}) || slices.ContainsFunc(p.Left, func(l Left) bool { return l.Kind == m.Kind && m.is(l.Object, l.Value) })
}
