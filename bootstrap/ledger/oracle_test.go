// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// oracle knows what each object shall be once no agent wants it, from what happened to the
// node and not from the ledger's records, of which it only asks which objects have one.
type oracle struct {
	node           *node
	objects        map[string]*expected
	begun          bool  // a killed run has left something to settle
	broken         error // a promise that the current operation has broken
	overrides      bool  // the current agent does
	claims         map[string][]claimed
	vague          map[string]bool // objects whose claims are not known: a run was killed or failed
	current        *op             // of an agent, while it runs
	settled        time.Time       // when what a killed run has left was last settled
	secrets        map[string]bool // objects with a claim that keeps no copies, before the current operation
	rewrites       map[string]bool // objects with a claim on what others rewrite
	mayBeRewritten map[string]bool // if another claim prevails
	recorded       map[string]bool // objects with a record, before the current operation
}

// expected is what is known of one object.
type expected struct {
	originals map[string]bool // what it may be after agents have undone it
	standing  bool            // another program has written it last, and so it stays:
	value     string          // as this
	unsure    bool            // it may also be undone, or stay: a run was killed there
	at        time.Time       // when the other program wrote
	leftAt    time.Time       // when an agent last wrote
	claimedAt time.Time       // when one may have found it as wanted, in an operation that failed
	along     bool            // it was last changed along
	unkept    map[string]bool // states that a secret has replaced: no copy of them is kept, but they are recognized
	ours      map[string]bool // the states in which agents left it or wanted it, while it was recorded
	maybe     map[string]bool // the states that an agent wanted in vain
}

type claimed struct {
	agent      int
	step, to   string
	loose      bool
	endsAtBoot bool
}

func newOracle(n *node) *oracle {
	o := &oracle{node: n, objects: map[string]*expected{}, claims: map[string][]claimed{}, vague: map[string]bool{}, current: &op{}}
	for _, object := range objects {
		o.objects[object] = &expected{}
		o.objects[object].reset(n.state(object))
	}
	n.wrote = o.wrote
	return o
}

func (e *expected) reset(state string) {
	*e = expected{originals: map[string]bool{state: true}, ours: map[string]bool{}, maybe: map[string]bool{}, unkept: map[string]bool{}}
}

// wrote notes a write of the current operation.
func (o *oracle) wrote(object, before string) {
	e, now := o.objects[object], o.node.state(object)
	if o.current.verb == "undo" && !e.standing {
		e.seen(o.current.kill == 0) // a run that is killed may not have recorded it
	}
	if o.current.verb == "undo" && e.standing && now != e.value {
		e.originals[e.value] = true // it is changed along, and put back at once
	}
	if o.current.verb == "undo" || e.standing && now == e.value { // it may only undo, or put back what that has changed along
		return
	}
	want := o.current.want(object)
	e.along = want == nil || want.has("loose")
	secret := want != nil && want.has("secret") && before != ""
	if secret {
		e.unkept[before] = true
		if o.recorded[object] {
			e.originals[before] = true // a copy was kept before a step called it a secret
		}
		before = ""
	}
	if e.unkept[now] {
		e.originals[now] = true
	}
	switch {
	case e.standing && (e.unsure || time.Since(o.settled) < time.Second || time.Since(e.claimedAt) < time.Second), secret && e.standing && o.recorded[object]:
		e.originals[before] = true
	case e.standing && !o.secrets[object] && e.stoodStill(object), secret && !o.recorded[object]:
		e.originals = map[string]bool{before: true}
	}
	if o.secrets[object] || secret { // a copy was kept, or not, before a step called it a secret
		e.originals[""] = true
		if e.standing {
			e.originals[e.value] = true
		}
	}
	e.standing, e.unsure, e.leftAt = false, false, time.Now()
	if want != nil && want.to != now && !want.has("loose") {
		e.maybe[now] = true // it was changed along, and is written next, or may be changed along next: nothing is left so
	} else {
		e.ours[now] = true
	}
}

// stoodStill reports whether what another program has written counts: only of files it is
// known when they were written. Else what follows a write of an agent at once does not.
func (e *expected) stoodStill(object string) bool {
	if object[0] != 'f' || e.value == "" {
		return time.Since(e.leftAt) >= time.Second
	}
	return time.Since(e.at) >= time.Second
}

// others notes that another program has written an object.
func (o *oracle) others(object string) {
	e, now := o.objects[object], o.node.state(object)
	if e.standing && o.begun {
		e.originals[e.value] = true // which settling may put back
	}
	if o.begun {
		e.maybe[now] = true // settling may take it for an agent's
	}
	if e.unkept[now] {
		e.originals[now] = true
	}
	again := e.standing && e.value == now
	e.at, e.value, e.along = time.Now(), now, true
	switch {
	case !o.recorded[object] && !o.begun:
		e.reset(now)
		for cause, side := range alongOf { // without a record, it follows the one that changes it along
			if side == object && o.recorded[cause] {
				maps.Copy(e.originals, o.objects[cause].originals)
			}
		}
	case o.rewrites[object] && now != "":
		e.standing, e.maybe[now] = false, true // what is rewritten for an agent is its own, also when it comes back later
		if o.begun {
			e.unsure, e.standing, e.originals[now] = true, true, true
		}
	case o.mayBeRewritten[object]: // the overridden agent's, if that prevails again
		e.standing, e.unsure = true, true
	case e.ours[now] && now != "" && !e.unkept[now]:
		e.standing, e.unsure = false, e.unsure || o.begun
	case e.maybe[now] || e.unkept[now] || o.begun:
		e.standing, e.unsure = true, true
		e.originals[now] = true
	default:
		e.standing, e.unsure = true, e.unsure && again
	}
}

// alongOf names what changes along with an object.
var alongOf = map[string]string{"v:a": "v:b[0]", "f:/conf": "v:z"}

// begunOver notes what an agent may have begun to write over: from then on that may be the
// original, also if the write failed, or has changed nothing.
func (o *oracle) begunOver(object string, done bool) {
	side := alongOf[object]
	for _, name := range []string{object, side} {
		if e := o.objects[name]; e != nil && e.standing && (!done || name == side) {
			e.originals[e.value] = true
		}
	}
}

// seen notes that an agent has seen an object and left it as it was. It may not have, if the
// operation failed: for a conflict it has not, for another object's failure it has.
func (e *expected) seen(done bool) {
	if done {
		e.leftAt = time.Now()
	} else {
		e.claimedAt = time.Now()
	}
}

// looksAtAll notes that undoing may look at any object that is recorded. What is written at
// once after that has not stood still for a second, which the ledger then knows.
func (o *oracle) looksAtAll() {
	for object, e := range o.objects {
		if o.recorded[object] {
			e.seen(false)
		}
	}
}

// released notes that an agent that had objects rewritten gave them up, while others want
// them: a release looks at no object, and so what was written for the agent may count as
// another program's.
func (o *oracle) released(recorded map[string]bool) {
	for object, e := range o.objects {
		if o.mayBeRewritten[object] && recorded[object] && !e.standing {
			e.standing, e.unsure, e.value = true, true, o.node.state(object)
		}
	}
}

// orphaned notes that the directory of an object has gone: what an agent has set aside cannot
// come back.
func (e *expected) orphaned() { e.standing, e.unsure, e.value = true, true, "" }

// wanted notes what an operation has asked for, and whether it was done.
func (o *oracle) wanted(applied ledger.Outcome, done bool) {
	for _, w := range o.current.wants {
		e := o.objects[w.object]
		// What the kernel would have made of a loose want that was never written, no run has seen.
		if e.maybe[rounded(w.to)] = true; done && (w.to == rounded(w.to) || o.node.state(w.object) == rounded(w.to)) {
			e.ours[rounded(w.to)] = true
		}
		o.begunOver(w.object, done)
		if e.standing && rounded(w.to) == o.node.state(w.object) {
			// It was written just now, and exactly as wanted; or it counts as wanted so before.
			e.unsure = e.unsure || !e.stoodStill(w.object) || w.has("loose")
			e.originals[e.value] = true
		}
		if !o.recorded[w.object] || rounded(w.to) == o.node.state(w.object) {
			// An apply that changes nothing does not write that it has looked again.
			e.seen(done && (!o.recorded[w.object] || e.standing && !e.unsure && !w.has("loose")))
		}
		if (w.has("adopt") || w.has("secret")) && !done && (!o.recorded[w.object] || e.standing) {
			e.originals[""] = true
		}
	}
	for _, object := range applied.Adopted {
		object = objectNamed(strings.TrimPrefix(object, o.node.root))
		if w := o.current.want(object); o.recorded[object] || w == nil || !w.has("adopt") {
			o.broken = fmt.Errorf("%q was adopted, and was recorded already, or nobody has asked for it", object)
		}
		e := o.objects[object]
		e.originals = map[string]bool{"": true}
		e.standing = false
	}
	o.claim(done)
}

func objectNamed(name string) string {
	i := slices.IndexFunc(objects, func(o string) bool { return strings.HasSuffix(o, ":"+name) })
	return objects[i]
}

func rounded(value string) string { return strings.TrimSuffix(value, "x") }

// claim repeats by which rule claims follow each other.
func (o *oracle) claim(done bool) {
	for _, w := range o.current.wants {
		if !done {
			o.vague[w.object] = true
			continue
		}
		if w.has("loose") {
			o.vague[w.object] = true // a want that it had before is given up, and the next one made anew
		}
		all := o.claims[w.object]
		if top := prevails(all); !o.vague[w.object] && !o.overrides && len(all) > 0 && !w.has("loose") && !top.loose &&
			rounded(top.to) != rounded(w.to) && top.agent != o.current.agent {
			o.broken = fmt.Errorf("agent%d wants %q to be %q, and that is no conflict", top.agent, w.object, top.to)
		}
		c := claimed{o.current.agent, o.current.step, w.to, w.has("loose") || w.object[0] == 'm', strings.ContainsAny(w.object[:1], "vm")}
		i := slices.IndexFunc(all, func(k claimed) bool { return k.agent == c.agent && k.step == c.step })
		top := prevails(all)
		if i >= 0 && all[i] == c && (top == all[i] || c.loose || top.loose || top.to == c.to) {
			continue
		}
		if i >= 0 {
			all = slices.Delete(slices.Clone(all), i, i+1)
		}
		o.claims[w.object] = append(all, c)
	}
}

func prevails(all []claimed) (top claimed) {
	for i, c := range all {
		if i == 0 || top.loose || !c.loose || (top.to == "") != (c.to == "") {
			top = c
		}
	}
	return top
}

func (o *oracle) dropClaims(drop func(claimed) bool) {
	for object, all := range o.claims {
		o.claims[object] = slices.DeleteFunc(slices.Clone(all), drop)
	}
}

// blur notes that it is not known what has become of an agent's claims, or that what remains
// was not made.
func (o *oracle) blur(agent int) {
	for object, all := range o.claims {
		if slices.ContainsFunc(all, func(c claimed) bool { return c.agent == agent }) {
			o.vague[object] = true
		}
	}
}

// reboot notes what a reboot does to values and mounts.
func (o *oracle) reboot(recorded map[string]bool) {
	for object, e := range o.objects {
		now := o.node.state(object)
		switch {
		case !strings.ContainsAny(object[:1], "vm"):
		case !recorded[object] && o.begun:
			originals := e.originals
			e.reset(now)
			maps.Copy(e.originals, originals)
			e.originals[atBoot(object)] = true
		case !recorded[object]:
			e.reset(now)
		default: // what is written at each boot
			if e.standing {
				e.originals[e.value] = true
			}
			e.originals[atBoot(object)] = true
			if e.standing, e.unsure, e.at, e.value = !e.ours[now], true, time.Now(), now; e.standing {
				e.originals[now] = true
			}
		}
	}
	o.dropClaims(func(c claimed) bool { return c.endsAtBoot })
}

// atBoot is what the kernel has at boot.
func atBoot(object string) string {
	if object[0] == 'm' {
		return ""
	}
	return "0"
}

// violated compares an object with what it shall be. recorded says that it still has a
// record.
func (o *oracle) violated(object string) error {
	e, now := o.objects[object], o.node.state(object)
	if e.standing && now == e.value || (!e.standing || e.unsure) && e.originals[now] {
		return nil
	}
	if object[0] == 'd' && now != "" && len(o.node.children(object[2:])) > 0 {
		return nil // it is in use
	}
	return fmt.Errorf("%q is %q, and shall be one of %q", object, now, sortedKeys(e.originals))
}

// disobeyed compares the objects with the claims that prevail.
func (o *oracle) disobeyed() error {
	for object, all := range o.claims {
		e, now := o.objects[object], o.node.state(object)
		if len(all) == 0 || o.vague[object] || e.standing || e.unsure || e.along {
			continue
		}
		if object[0] == 'f' && e.originals[now] || o.rewrites[object] {
			continue // what the agent wants was not kept, and it writes it anew; or others have rewritten it
		}
		steps := 0 // a step whose want another one of its agent gives up makes it anew
		top := prevails(all)
		for _, c := range all {
			if c.agent == top.agent {
				steps++
			}
		}
		if steps == 1 && !top.loose && rounded(top.to) != now {
			return fmt.Errorf("%q is %q, and agent%d wants %q", object, now, top.agent, top.to)
		}
	}
	return nil
}
