// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package faults

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/snapshot"
)

// stand is a node on which one scenario is played repeatedly.
type stand struct {
	Scenario
	node   *node
	before snapshot.Snapshot // before the first command
	start  snapshot.Snapshot // at the command's start
	wanted snapshot.Snapshot // at the command's end
}

// newStand makes a node and plays the scenario once, undisturbed.
func newStand(ctx context.Context, binary, work string, s Scenario) (*stand, error) {
	n, err := newNode(ctx, binary, work)
	if err != nil {
		return nil, err
	}
	st := &stand{Scenario: s, node: n}
	if err := st.rehearse(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", s.Name, err), n.Close())
	}
	return st, nil
}

func (s *stand) rehearse(ctx context.Context) (err error) {
	if err := s.node.clean(ctx, []string{"sh", s.Scenario.node}); err != nil {
		return err
	}
	if err := s.toStart(ctx); err != nil { // one run makes the objects that are made only once
		return err
	}
	if err := s.node.clean(ctx, append([][]string{s.run}, s.undo...)...); err != nil {
		return err
	}
	for _, step := range []struct {
		state *snapshot.Snapshot
		reach func(context.Context) error
	}{
		{&s.before, func(context.Context) error { return nil }},
		{&s.start, s.toStart},
		{&s.wanted, func(ctx context.Context) error { return s.node.clean(ctx, s.run) }},
	} {
		if err := step.reach(ctx); err != nil {
			return err
		}
		if *step.state, err = s.state(ctx); err != nil {
			return err
		}
	}
	if err := s.node.clean(ctx, s.undo...); err != nil {
		return err
	}
	return s.is(ctx, "undone", s.before)
}

func (s *stand) toStart(ctx context.Context) error {
	if s.Scenario.start == nil {
		return nil
	}
	return s.Scenario.start(ctx, s.node)
}

func (s *stand) state(ctx context.Context) (snapshot.Snapshot, error) {
	now, err := s.node.state(ctx)
	if err != nil || s.look == "" {
		return now, err
	}
	o, err := s.node.command(ctx, "sh", s.look)
	if err == nil && o.code != 0 {
		err = errors.New(o.String())
	}
	now.Lines("seen", o.output)
	return now, err
}

// is returns an error with the differences between the node and its wanted state.
func (s *stand) is(ctx context.Context, what string, want snapshot.Snapshot) error {
	now, err := s.state(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if diff := want.Diff(now); len(diff) > 0 {
		return fmt.Errorf("%s: %w", what, errors.New(strings.Join(diff, "; ")))
	}
	return nil
}

// Verdict is the result of a point.
type Verdict struct {
	Point
	Line      string // strace's line for the call that met the fault; empty if none did
	Code      int    // exit status; -1: killed
	Output    string
	Violation string // empty if there is none
}

// try plays a point. A violation is not an error: errors are those of the harness.
func (s *stand) try(ctx context.Context, p Point) (Verdict, error) {
	v := Verdict{Point: p}
	if err := s.toStart(ctx); err != nil {
		return v, err
	}
	o, hit, err := s.inject(ctx, p)
	if err != nil {
		return v, err
	}
	v.Line, v.Code, v.Output = hit, o.code, strings.TrimSpace(o.output)
	if err := errors.Join(s.judge(ctx, p, o), s.recover(ctx, p)); err != nil {
		v.Violation = err.Error()
	}
	return v, nil
}

// judge checks the node that the command has left.
func (s *stand) judge(ctx context.Context, p Point, o outcome) error {
	now, err := s.state(ctx)
	if err != nil {
		return fmt.Errorf("after the fault: %w", err)
	}
	errs := []error{s.torn(now)}
	switch diff := s.wanted.Diff(now); {
	case o.hung:
		errs = append(errs, errors.New("it hangs"))
	case p.Fault == Kill && o.code == -1:
	case strings.Contains(o.output, "fatal error: runtime: netpollBreak"): // a descriptor of the Go runtime's own: like a kill
	case o.code == 0 && len(diff) > 0:
		errs = append(errs, fmt.Errorf("exit status 0, and yet: %w", errors.New(strings.Join(diff, "; "))))
	case o.code == 0:
	case o.code != 1 || strings.Contains(o.output, "goroutine "):
		errs = append(errs, fmt.Errorf("exit status %d", o.code))
	case !explained.MatchString(o.output):
		errs = append(errs, errors.New("no message names an object"))
	}
	return errors.Join(errs...)
}

// explained matches a message that names an object: a path, a link, or another subject of
// a system call.
var explained = regexp.MustCompile(`(?m)^nodeinit: .*(/|netlink|socket|links? |links|rules|routes|qdisc|filter|namespace|cgroup|CNI plugin)`)

// torn returns an error for objects that are neither in their old nor in their new state,
// nor temporary.
func (s *stand) torn(now snapshot.Snapshot) error {
	start, wanted := alike(s.start), alike(s.wanted)
	var errs []error
	for object, state := range alike(now) {
		_, old := start[object]
		_, new := wanted[object]
		switch {
		case old && state == start[object], new && state == wanted[object], onItsWay(object):
		case start[object] == covered: // that no longer exists
		case wanted[object] == covered && strings.HasPrefix(state, "d"): // that does not exist yet
		case !old && !new:
			errs = append(errs, fmt.Errorf("%s belongs to neither state", object))
		default:
			errs = append(errs, fmt.Errorf("%s is neither old nor new: %s, not %s, nor %s", object, state, start[object], wanted[object]))
		}
	}
	for object := range start {
		_, here := now[object]
		if _, new := wanted[object]; new && !here && !onItsWay(object) {
			errs = append(errs, fmt.Errorf("%s is gone", object))
		}
	}
	return errors.Join(append(errs, s.wholeConfig(now))...)
}

// alike compares names without their random parts.
func alike(s snapshot.Snapshot) snapshot.Snapshot {
	like := snapshot.Snapshot{}
	for object, state := range s {
		like[object] = number.ReplaceAllString(state, "DRAWN")
	}
	return like
}

var number = regexp.MustCompile(`DRAWN-\d+`)

// wholeConfig returns an error unless ..data shows all of the old configuration, or all
// of the new.
func (s *stand) wholeConfig(now snapshot.Snapshot) error {
	if have := config(now); have != config(s.start) && have != config(s.wanted) {
		return fmt.Errorf("the configuration is torn: %s", have)
	}
	return nil
}

// config returns the content of ..data of the agent's configuration.
func config(s snapshot.Snapshot) string {
	const dir = "file /run/agent-config/"
	_, target, shown := strings.Cut(s[dir+"..data"], " to ")
	var lines []string
	for object, state := range s {
		if key, below := strings.CutPrefix(object, dir+target+"/"); shown && below {
			lines = append(lines, key+" "+state)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// covered is how snapshot describes an object under a mount.
const covered = "on another device"

// onItsWay reports whether the object is temporary, or the ledger's.
func onItsWay(object string) bool {
	path := strings.TrimPrefix(object, "file ")
	name := path[strings.LastIndex(path, "/")+1:]
	return durable.IsTemporary(name) || strings.HasPrefix(name, "..tmp.") || name == "..lock" || strings.Contains(path, "/DRAWN-") || strings.HasPrefix(path, stateDir)
}

// recover does what an administrator does: half of the time it repeats the command, and
// half of the time it undoes it; in a scenario of kills it always undoes.
func (s *stand) recover(ctx context.Context, p Point) error {
	again := (p.When+slices.Index(Faults(), p.Fault))%2 == 0 || len(s.undo)+len(s.onward) == 0
	switch {
	case again && !s.kills:
		if err := s.node.clean(ctx, s.run); err != nil {
			return fmt.Errorf("once more: %w", err)
		}
		if err := s.is(ctx, "once more", s.wanted); err != nil {
			return err
		}
	case s.onward != nil:
		if err := s.node.clean(ctx, s.onward...); err != nil {
			return fmt.Errorf("and on: %w", err)
		}
	}
	if err := s.node.clean(ctx, s.undo...); err != nil {
		return fmt.Errorf("undo: %w", err)
	}
	return s.is(ctx, "undone", s.before)
}
