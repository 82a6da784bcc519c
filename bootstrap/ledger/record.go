// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"cmp"
	"slices"
	"time"
)

// maxPast is how many states of agents a record remembers.
const maxPast = 32

// record is what is known of one object. It exists as long as a step wants the object, or
// another object with a record has changed it along.
type record struct {
	Kind     string    `json:"kind"`
	Space    string    `json:"space"`
	Object   text      `json:"object"`
	Place    place     `json:"place,omitzero"`
	Seq      int       `json:"seq"` // the newest is undone first
	Original State     `json:"original"`
	Left     State     `json:"left"`             // as it was read after the last write
	LeftAt   time.Time `json:"left_at,omitzero"` // when it was last read so
	Intent   *intent   `json:"intent,omitempty"` // a write that was begun
	Past     []string  `json:"past,omitempty"`   // hashes of states that agents left or wanted, the newest last
	Kept     text      `json:"kept,omitempty"`   // why it could not be undone, although its agent is
	Claims   []claim   `json:"claims,omitempty"`
	Causes   []cause   `json:"causes,omitempty"`

	id      string
	unknown unknown
	kind    *Kind  // of the want that is being applied; nil: as the book knows it
	settled *State // as it was read when its write was settled: the next look need not read it again
}

func (r *record) clone() *record {
	c := *r
	c.Past, c.Claims, c.Causes = slices.Clone(r.Past), slices.Clone(r.Claims), slices.Clone(r.Causes)
	if r.Intent != nil {
		intent := *r.Intent
		intent.Along = slices.Clone(intent.Along)
		c.Intent = &intent
	}
	return &c
}

// intent is a write that was begun: what it makes of the object, and what it changes along.
type intent struct {
	To    State   `json:"to"`
	Was   State   `json:"was"`
	Undo  bool    `json:"undo,omitempty"`
	Along []along `json:"along,omitempty"`
}

// along is an object that a write changes along.
type along struct {
	Kind   string `json:"kind"`
	Space  string `json:"space"`
	Object text   `json:"object"`
	Was    State  `json:"was"`
	To     State  `json:"to"`             // as it will probably be
	Back   *State `json:"back,omitempty"` // what undoing makes of it after that; nil: nothing
	Boot   string `json:"boot,omitempty"` // it ends with this boot

	change string
}

func (a along) id() string { return a.Space + " " + string(a.Object) }

// claim is what one step of one agent wants.
type claim struct {
	Agent     string `json:"agent"`
	Step      string `json:"step"`
	To        State  `json:"to"`
	Loose     bool   `json:"loose,omitempty"`
	Secret    bool   `json:"secret,omitempty"`
	Rewritten bool   `json:"rewritten,omitempty"`
	Adopted   bool   `json:"adopted,omitempty"`
	Needs     []text `json:"needs,omitempty"`
	Boot      string `json:"boot,omitempty"`  // it ends with this boot
	Again     text   `json:"again,omitempty"` // the ID of what changes the object again at each boot

	unknown unknown
}

// cause is an object whose write has changed this one along. As long as one is recorded, so
// is this one, and its original comes back after the last.
type cause struct {
	ID   text   `json:"id"`
	To   State  `json:"to"` // what it made of this one
	Boot string `json:"boot,omitempty"`
}

func bySeq(a, b *record) int { return a.Seq - b.Seq }

func (c claim) is(agent, step string) bool { return c.Agent == agent && c.Step == step }

// isOf reports whether an agent has a claim.
func (r *record) isOf(agent string) bool {
	return slices.ContainsFunc(r.Claims, func(c claim) bool { return c.Agent == agent })
}

// want is the claim's want, for the functions of its kind.
func (c claim) want(r *record, k *Kind) Want {
	return Want{Kind: k, Object: string(r.Object), To: c.To, Loose: c.Loose, Secret: c.Secret, Rewritten: c.Rewritten}
}

// claim returns the claim of a step, which can be changed in place. Nil: it has none.
func (r *record) claim(agent, step string) *claim {
	i := slices.IndexFunc(r.Claims, func(c claim) bool { return c.is(agent, step) })
	if i < 0 {
		return nil
	}
	return &r.Claims[i]
}

// addCause records that the write of by has made the object what to says, for as long as by
// is recorded, or until the boot ends.
func (r *record) addCause(by *record, to State, boot string) {
	r.Causes = slices.DeleteFunc(r.Causes, func(c cause) bool { return string(c.ID) == by.id })
	r.Causes = append(r.Causes, cause{ID: text(by.id), To: to.bare(), Boot: cmp.Or(boot, by.boot())})
}

// prevailing is the claim that decides: the last one, but a loose one only if it wants
// another type, since else it is content with what the others want. Nil: there is none.
func prevailing(claims []claim) (top *claim) {
	for i, c := range claims {
		if top == nil || top.Loose || !c.Loose || top.To.Type != c.To.Type {
			top = &claims[i]
		}
	}
	return top
}

// put makes c the claim of its step. It becomes the last one, unless it wants what it
// wanted before and still prevails.
func (r *record) put(k *Kind, c claim) {
	was := r.claim(c.Agent, c.Step)
	if was == nil {
		r.Claims = append(r.Claims, c)
		return
	}
	c.Adopted, c.unknown = was.Adopted, was.unknown
	if c.To.Equal(was.To) || c.Loose && was.Loose && c.To.Type == was.To.Type {
		c.To = was.To // with its content
	}
	top := prevailing(r.Claims)
	if was.Loose == c.Loose && was.To.Equal(c.To) && (top == was || k.agree(top.want(r, k), c.want(r, k))) {
		*was = c
		return
	}
	r.Claims = append(r.without(func(o claim) bool { return o.is(c.Agent, c.Step) }), c)
}

// boot returns the boot that the claims end with. Empty: one outlives it.
func (r *record) boot() (boot string) {
	for _, c := range r.Claims {
		if boot = c.Boot; boot == "" {
			break
		}
	}
	return boot
}

// remember adds a state that an agent left or wants. It is no original when it comes back: an
// older release of the agent, a rollback or a backup brings it.
func (r *record) remember(s State) {
	if s.IsZero() {
		return // anyone can remove an object
	}
	hash := s.hash()
	if slices.Contains(r.Past[max(0, len(r.Past)-maxPast/2):], hash) {
		return // a run that changes nothing records nothing
	}
	r.Past = append(slices.DeleteFunc(r.Past, func(h string) bool { return h == hash }), hash)
	if len(r.Past) > maxPast {
		r.Past = r.Past[len(r.Past)-maxPast:]
	}
}

// leave records the state in which an agent has left the object.
func (r *record) leave(now State) {
	r.Left, r.LeftAt = now.bare(), time.Now()
	r.remember(now)
}

// isOurs reports whether an agent left or wanted the object in this state, or others have
// rewritten it for an agent.
func (r *record) isOurs(k *Kind, now State) bool {
	top := prevailing(r.Claims)
	isRewritten := top != nil && top.Rewritten && top.To.Type == now.Type
	likeLeft := now
	likeLeft.Xattrs = nil
	isEqual := likeLeft.Equal(r.Left) // and if it is not the same, another program has made an equal one, or granted access
	return isRewritten || k.same(now, r.Left) || slices.Contains(r.Past, now.hash()) && !now.IsZero() && !isEqual
}

// leaveRewritten records what others have rewritten for an agent, before another claim
// prevails: it stays the agents'.
func (r *record) leaveRewritten(k *Kind, now State) {
	if !k.same(now, r.Left) && r.isOurs(k, now) {
		r.leave(now)
	}
}

// without returns the claims but those that are dropped. The record's own stay.
func (r *record) without(drop func(claim) bool) []claim {
	return slices.DeleteFunc(slices.Clone(r.Claims), drop)
}

// isMade reports whether an agent has changed the object.
func (r *record) isMade(k *Kind) bool { return !k.same(r.Left, r.Original) }

// quiet is how long a state has to stand still until it counts: half a file does not, nor
// does what two programs contest.
const quiet = time.Second

// stoodStill reports whether another program has finished writing a state that is none of
// ours.
func (r *record) stoodStill(now State) bool {
	since := now.Changed
	if since.IsZero() {
		since = r.LeftAt
	}
	return time.Since(since) >= quiet
}

// isSecret reports whether a step calls the content a secret.
func (r *record) isSecret() bool {
	return r != nil && slices.ContainsFunc(r.Claims, func(c claim) bool { return c.Secret })
}

// isOriginal reports whether the present state takes the place of the original: another
// program has made it, and an agent is about to write over it. The original itself does, if
// it was not kept, and no step calls it a secret any more. What has gone by itself does not.
func (r *record) isOriginal(k *Kind, now State) bool {
	switch {
	case r.isSecret(), now.IsZero() && k.Rounds:
		return false
	case k.same(now, r.Original):
		return r.Original.secret
	}
	return !r.isOurs(k, now) && r.stoodStill(now)
}

// replaceOriginal makes the present state, of which a copy is kept, the original. As long as no
// agent has changed the object, it is also as found.
func (r *record) replaceOriginal(k *Kind, now, copied State) {
	if !r.isMade(k) {
		r.Left = now.bare()
	}
	r.Original = copied
}

// MarshalJSON writes the fields of a later version too.
func (c claim) MarshalJSON() ([]byte, error) {
	type plain claim
	return marshal(plain(c), c.unknown)
}

// UnmarshalJSON keeps the fields of a later version.
func (c *claim) UnmarshalJSON(raw []byte) error {
	type plain claim
	return unmarshal(raw, (*plain)(c), &c.unknown)
}
