// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package neighbours

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// beliefs describe what agents may rely on.
type beliefs struct {
	scenario Scenario
	Agents   []*belief
	Left     []string        // objects left by released agents
	Made     map[string]bool // objects that agents have changed, and not restored
}

// belief is what one agent may rely on.
type belief struct {
	Told     State            // state that it was told it has
	Over     map[string][]int // agents that have, or may have, set one of these objects
	Sure     bool             // its last run was an apply, and ended in this boot
	Version  int              // that it applied
	Owner    string           // owner of the last apply
	Tried    []int            // versions with possible records
	Recorded bool             // something may be recorded
	Halfway  bool             // its last undo was cut short
}

func newBeliefs(s Scenario) *beliefs {
	b := &beliefs{scenario: s, Made: map[string]bool{}}
	for range s.Agents {
		b.Agents = append(b.Agents, &belief{Told: State{}, Over: map[string][]int{}})
	}
	return b
}

func (b *beliefs) clone() *beliefs {
	c := &beliefs{scenario: b.scenario, Left: slices.Clone(b.Left), Made: maps.Clone(b.Made)}
	for _, a := range b.Agents {
		copied := *a
		copied.Told, copied.Over, copied.Tried = maps.Clone(a.Told), map[string][]int{}, slices.Clone(a.Tried)
		for object, by := range a.Over {
			copied.Over[object] = slices.Clone(by)
		}
		c.Agents = append(c.Agents, &copied)
	}
	return c
}

// holds returns the objects that no other agent has set differently.
func (a *belief) holds() State {
	holds := maps.Clone(a.Told)
	maps.DeleteFunc(holds, func(object, _ string) bool { return len(a.Over[object]) > 0 })
	return holds
}

func (b *beliefs) version(op operation) Version {
	return b.scenario.Agents[op.Agent].Versions[op.Version]
}

// learn updates what agents may rely on after op. The error describes an outcome that
// should not occur.
func (b *beliefs) learn(op operation, o outcome) error {
	a := b.Agents[op.Agent]
	switch {
	case o.Conflict && op.Do == apply:
		return b.refused(op, o)
	case o.Err != "":
		return fmt.Errorf("it fails: %s", o.Err)
	}
	if o.Killed {
		b.mayHaveDragged(op.Agent)
	}
	switch {
	case op.Do == apply && o.Killed:
		b.mayHave(op)
	case op.Do == apply:
		return b.has(op)
	case op.Do == uninstall && o.Killed:
		a.Told, a.Over, a.Sure, a.Halfway = State{}, map[string][]int{}, false, true
	case op.Do == uninstall:
		b.forget(op.Agent)
	case op.Do == release:
		b.abandon(op.Agent)
		b.Left = append(b.Left, o.Left...)
	}
	return nil
}

// has notes that the agent has everything that it wants. State that existed before, and
// that no agent made, is not recorded: the agent has it as long as no other agent wants
// it to be different.
func (b *beliefs) has(op operation) error {
	a, want := b.Agents[op.Agent], b.version(op).objects()
	b.unsettle(op)
	told := maps.Clone(want)
	maps.DeleteFunc(told, func(object, _ string) bool { return !b.Made[object] })
	for n, other := range b.Agents {
		for object, state := range other.Told {
			wanted, both := want[object]
			differs := both && wanted != state
			switch known := slices.Contains(other.Over[object], op.Agent); {
			case n == op.Agent:
			case differs && !known && !b.version(op).Override:
				return fmt.Errorf("agent %q wants %s to be %q, and it was not refused", b.scenario.Agents[n].Name, object, state)
			case differs && !known:
				other.Over[object] = append(other.Over[object], op.Agent)
			case !differs && known:
				other.restored(object, op.Agent)
			}
		}
	}
	a.Told, a.Over, a.Sure, a.Recorded = told, map[string][]int{}, true, true
	a.Version, a.Owner = op.Version, op.Owner
	if !a.Halfway { // otherwise a restored object may still have its old record
		a.Tried = nil
	}
	a.try(op.Version)
	return nil
}

// made notes the changes of an operation. Objects that it has restored belong to no
// agent, nor do those left for good.
func (b *beliefs) made(original, was, now State) {
	for object, state := range now {
		switch before, there := original[object]; {
		case there && state == before || b.isLeft(object):
			delete(b.Made, object)
		case was[object] != state:
			b.Made[object] = true
		}
	}
	maps.DeleteFunc(b.Made, func(object string, _ bool) bool { _, there := now[object]; return !there })
}

// unsettle notes that op may change objects that others want and have not recorded.
func (b *beliefs) unsettle(op operation) {
	want := b.version(op).objects()
	for n, other := range b.Agents {
		for object, state := range b.scenario.Agents[n].Versions[other.Version].objects() {
			wanted, both := want[object]
			if _, told := other.Told[object]; n != op.Agent && both && wanted != state && !told {
				other.Sure = false
			}
		}
	}
}

// try notes that parts of a version may be recorded.
func (a *belief) try(version int) {
	if !slices.Contains(a.Tried, version) {
		a.Tried = append(a.Tried, version)
		slices.Sort(a.Tried)
	}
}

// restored notes that by no longer has set object.
func (a *belief) restored(object string, by int) {
	a.Over[object] = slices.DeleteFunc(a.Over[object], func(n int) bool { return n == by })
	if len(a.Over[object]) == 0 {
		delete(a.Over, object)
	}
}

// mayHave notes that the agent has a part of what it wants now, or wanted before.
func (b *beliefs) mayHave(op operation) {
	b.unsettle(op)
	a, want := b.Agents[op.Agent], b.version(op).objects()
	kept := b.scenario.Agents[op.Agent].Versions[a.Version].common(b.version(op)).objects()
	maps.DeleteFunc(a.Told, func(object, state string) bool {
		return kept[object] != state || len(a.Over[object]) > 0 // it was about to set it again
	})
	a.Sure, a.Recorded = false, true
	a.try(op.Version)
	for n, other := range b.Agents {
		for object, state := range other.Told {
			wanted, both := want[object]
			if n != op.Agent && both && wanted != state && b.version(op).Override && !slices.Contains(other.Over[object], op.Agent) {
				other.Over[object] = append(other.Over[object], op.Agent)
			}
		}
	}
}

// mayHaveDragged notes that the agent was killed, maybe between a change that the kernel
// makes along with one of its own and the repair of that: the next apply of the agent
// that wants it repairs it.
func (b *beliefs) mayHaveDragged(agent int) {
	const object = "value " + ofLink
	for n, other := range b.Agents {
		_, told := other.Told[object]
		_, all := other.Told["value "+forwarding4]
		if n == agent || !told || all {
			continue
		}
		for _, tried := range b.Agents[agent].Tried {
			if b.scenario.Agents[agent].Versions[tried].objects()["value "+forwarding4] != "" {
				delete(other.Told, object)
				other.Sure = false
			}
		}
	}
}

// forget notes that the agent no longer has anything, and the others have what they want.
func (b *beliefs) forget(agent int) {
	for _, other := range b.Agents {
		for object := range other.Over {
			other.restored(object, agent)
		}
	}
	b.Agents[agent] = &belief{Told: State{}, Over: map[string][]int{}}
}

// abandon notes that the agent no longer has anything, and that the objects it has set keep
// their state.
func (b *beliefs) abandon(agent int) {
	for _, other := range b.Agents {
		for object, by := range other.Over {
			if slices.Contains(by, agent) {
				delete(other.Told, object)
				other.Sure = false
			}
		}
	}
	b.forget(agent)
}

// refused returns an error unless another agent may want another state.
func (b *beliefs) refused(op operation, o outcome) error {
	want := b.version(op).objects()
	for n, other := range b.Agents {
		for _, tried := range other.Tried {
			for object, state := range b.scenario.Agents[n].Versions[tried].objects() {
				if wanted, both := want[object]; both && wanted != state && n != op.Agent {
					return nil
				}
			}
		}
	}
	if slices.ContainsFunc(b.Left, func(left string) bool { return filepath.Ext(left) == ".conflist" }) {
		return nil // an uninstalled agent keeps plugins recorded that a configuration left behind needs
	}
	return fmt.Errorf("it is refused, though no other agent wants another state: %s", o.Err)
}

// rebooted forgets the state that a reboot takes away.
func (b *beliefs) rebooted() {
	for n, a := range b.Agents {
		lasts := func(object string) bool { return b.scenario.Agents[n].Versions[a.Version].lasts(object) }
		maps.DeleteFunc(a.Told, func(object, _ string) bool { return !lasts(object) })
		maps.DeleteFunc(a.Over, func(object string, _ []int) bool { return !lasts(object) || strings.HasPrefix(object, "value ") })
		a.Sure = false
	}
}

// none reports whether no agent has anything recorded.
func (b *beliefs) none() bool {
	return !slices.ContainsFunc(b.Agents, func(a *belief) bool { return a.Recorded })
}

// sets reports whether a file is a drop-in that sets a value at each boot.
func (b *beliefs) sets(path, key string) bool {
	for _, agent := range b.scenario.Agents {
		for _, v := range agent.Versions {
			for _, w := range v.Steps {
				if d, is := w.(DropIn); is && d.Key == key && filepath.Base(path) == d.Name {
					return true
				}
			}
		}
	}
	return false
}

// isLeft reports whether an object was left for good, or is a directory that contains
// such an object.
func (b *beliefs) isLeft(object string) bool {
	_, name, _ := strings.Cut(object, " ")
	return slices.ContainsFunc(b.Left, func(left string) bool {
		needed := filepath.Ext(left) == ".conflist" && strings.HasPrefix(name, filepath.Dir(binDir)) // it names a plugin
		return needed || left == name || b.sets(left, name) || strings.HasSuffix(left, "/"+name) || strings.Contains(left, "/"+name+"/")
	})
}
