// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package neighbours

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// machine is a node on which operations run.
type machine interface {
	run(context.Context, operation) (outcome, error)
	reboot() error
	observe() (State, error)
	records() (files, error) // of the journals
}

// Violation is a broken rule.
type Violation struct {
	Scenario string
	Trace    []string // the operations before
	What     string
}

func (v *Violation) Error() string {
	return fmt.Sprintf("%s: %s:\n\t%s", v.Scenario, strings.Join(v.Trace, ", "), strings.ReplaceAll(v.What, "\n", "\n\t"))
}

// judge runs operations on a machine, and compares it with what agents may rely on.
type judge struct {
	machine
	*beliefs
	before State // before the first agent
	trace  []string
}

func (j *judge) describe(op operation) string {
	if op.Do == reboot {
		return op.Do
	}
	text := j.scenario.Agents[op.Agent].Name + " " + op.Do
	if op.Do == apply {
		text += fmt.Sprint(" v", op.Version+1)
	}
	if op.Kill > 0 {
		text += fmt.Sprint(" killed at ", op.Kill)
	}
	return text
}

func (j *judge) violation(format string, args ...any) error {
	return &Violation{j.scenario.Name, slices.Clone(j.trace), fmt.Sprintf(format, args...)}
}

// do runs op, and returns a [Violation] if a rule is broken. It reports whether the
// process was killed.
func (j *judge) do(ctx context.Context, op operation) (killed bool, err error) {
	op.Accept = op.Do == uninstall && len(j.Left) > 0 // the directory may be this agent's
	j.trace = append(j.trace, j.describe(op))
	var o outcome
	if op.Do == reboot {
		if err := j.machine.reboot(); err != nil {
			return false, err
		}
		j.rebooted()
	} else if o, err = j.operate(ctx, op); err != nil {
		return o.Killed, err
	}
	now, err := j.observe()
	if err != nil {
		return o.Killed, err
	}
	j.made(j.before, now, now) // objects lost in a reboot belong to no agent
	if err := j.content(ctx, now); err != nil {
		return o.Killed, err
	}
	return o.Killed, j.end(now)
}

// operate runs an agent's operation.
func (j *judge) operate(ctx context.Context, op operation) (o outcome, err error) {
	was, err := j.observe()
	if err != nil {
		return o, err
	}
	recorded, err := j.records()
	if err != nil {
		return o, err
	}
	if o, err = j.run(ctx, op); err != nil {
		return o, err
	}
	now, err := j.observe()
	if err != nil {
		return o, err
	}
	j.made(j.before, was, now)
	if err := j.learn(op, o); err != nil {
		return o, j.violation("%v", err)
	}
	if o.Conflict {
		return o, j.unchanged(was, now, recorded)
	}
	return o, nil
}

// unchanged returns a violation if a refused apply has changed anything.
func (j *judge) unchanged(was, now State, recorded files) error {
	if lines := was.diff(now); len(lines) > 0 {
		return j.violation("it was refused, but has changed\n%s", strings.Join(lines, "\n"))
	}
	after, err := j.records()
	if err != nil {
		return err
	}
	for _, all := range []files{recorded, after} {
		maps.DeleteFunc(all, func(name string, _ file) bool { return strings.HasSuffix(name, ".last.json") })
	}
	if !maps.Equal(recorded, after) {
		return j.violation("it was refused, but has changed the journal")
	}
	return nil
}

// content returns a violation if an agent lacks what it may rely on.
func (j *judge) content(ctx context.Context, now State) error {
	for n, a := range j.Agents {
		name := j.scenario.Agents[n].Name
		if lines := now.lacks(a.holds()); len(lines) > 0 {
			return j.violation("agent %q lacks\n%s", name, strings.Join(lines, "\n"))
		}
		if !a.Sure || len(a.Over) > 0 {
			continue
		}
		o, err := j.run(ctx, operation{Agent: n, Do: check, Version: a.Version, Owner: a.Owner})
		if err != nil {
			return err
		}
		found := len(a.Told) < len(j.scenario.Agents[n].Versions[a.Version].objects()) // whether some of it was found as wanted
		if o.Err == "" && o.Records && (found || len(j.Left) > 0) {
			continue // another agent shares it by now
		}
		if o.Err != "" || len(o.Changes) > 0 {
			return j.violation("agent %q has all that it wants, but its plan finds %q %s", name, o.Changes, o.Err)
		}
	}
	return nil
}

// onlyReports reports whether the state directory has only reports, of agents whose every apply
// failed before it changed anything.
func onlyReports[V any](recorded map[string]V) bool {
	for name := range recorded {
		agent, isReport := strings.CutSuffix(name, ".last.json")
		if _, hasJournal := recorded[agent+".journal"]; name != "slipway" && (!isReport || hasJournal) {
			return false
		}
	}
	return true
}

// end returns a violation if no agent is left, and the node is not as it was.
func (j *judge) end(now State) error {
	if !j.none() {
		return nil
	}
	lines := slices.DeleteFunc(j.before.diff(now), func(line string) bool {
		object, _, _ := strings.Cut(line, ": ")
		return j.isLeft(object)
	})
	if len(lines) > 0 {
		return j.violation("no agent is left, and what has changed is\n%s\nleft: %q", strings.Join(lines, "\n"), j.Left)
	}
	recorded, err := j.records()
	if err != nil {
		return err
	}
	if !onlyReports(recorded) && len(j.Left) == 0 {
		return j.violation("no agent is left, and there is %q", slices.Sorted(maps.Keys(recorded)))
	}
	return nil
}
