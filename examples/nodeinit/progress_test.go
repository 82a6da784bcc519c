// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
)

func TestALogDoesNotCutThroughTheLineOfAStep(t *testing.T) {
	var seen bytes.Buffer
	s := &screen{w: &seen}
	log := s.beside(&seen)
	fmt.Fprintln(log, "before")
	s.show(running("cni"))
	fmt.Fprintln(log, "warning: slow")
	fmt.Fprintln(log, "warning: slower")
	s.show("")
	fmt.Fprintln(&seen, "  cni          changed")
	fmt.Fprintln(log, "after")
	require.Equal(t, []string{"before", "warning: slow", "warning: slower", "  cni          changed", "after", ""}, rendered(seen.String()))
}

// rendered returns the lines as a terminal shows them.
func rendered(text string) (lines []string) {
	for _, line := range strings.Split(text, "\n") {
		lines = append(lines, line[strings.LastIndex(line, "\r\033[K")+1:])
	}
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "\033[K")
	}
	return lines
}

func TestTheLastLineOfManyErrorsFitsAPodsStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		errs []error
		last string
	}{
		"one":         {[]error{errors.New("no ConfigMap")}, "nodeinit: no ConfigMap"},
		"a few":       {[]error{errors.New("first"), errors.New("second")}, "nodeinit: second"},
		"many":        {many(100), "nodeinit: failed; the whole error is above, and begins with: reason 0 with a text that takes room"},
		"one, longer": {[]error{errors.New(strings.Repeat("ä", 4000))}, "nodeinit: failed; the whole error is above, and begins with: " + strings.Repeat("ä", 512) + "..."},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			a := &app{stderr: &stderr}
			a.printError(errors.Join(tc.errs...))
			text := strings.TrimSuffix(stderr.String(), "\n")
			require.Equal(t, tc.last, text[strings.LastIndex(text, "\n")+1:])
			require.Less(t, len(tc.last), fitsStatus)
		})
	}
}

// Steps finished before one that does not end stay in the report.
func TestWhatIsFinishedIsInTheReportOfARunThatIsGivenUp(t *testing.T) {
	a := &app{current: current{&bootstrap.Plan{Steps: []bootstrap.Step{{Name: stepCgroup}, {Name: stepBPFFS}, {Name: stepCNI}, {Name: stepLoaded}}}}}
	trace := a.noting(nil)
	trace.PlanStart(t.Context(), bootstrap.OpApply)
	for _, step := range []string{stepCgroup, stepBPFFS} {
		trace.StepStart(t.Context(), bootstrap.OpApply, step)
		trace.StepDone(t.Context(), bootstrap.OpApply, bootstrap.Result{Step: step, Status: bootstrap.Changed, Changes: []string{"mount it"}})
	}
	trace.StepStart(t.Context(), bootstrap.OpApply, stepCNI)
	report, err := a.at.unfinished("wait", errors.New("too long"))
	require.EqualError(t, err, "step cni: wait: too long")
	require.Equal(t, bootstrap.OpApply, report.Op)
	require.Equal(t, "4 steps: 2 changed, 1 failed, 1 not-run", report.Summary())
	require.Equal(t, err, report.Results[2].Err)
}

// On a terminal a long detail stays in its column.
func TestProgressFitsTheTerminal(t *testing.T) {
	var seen bytes.Buffer
	p := &progress{w: &seen, terminal: &screen{w: &bytes.Buffer{}, width: 80}}
	p.done(t.Context(), bootstrap.OpApply, bootstrap.Result{Step: stepCNI, Status: bootstrap.Unchanged, Changes: []string{strings.Repeat("some words ", 20), "short"}})
	for line := range strings.Lines(seen.String()) {
		require.LessOrEqual(t, len(line), 81)
		if line[2] == ' ' {
			require.True(t, strings.HasPrefix(line, strings.Repeat(" ", 39)), line)
		}
	}
	require.Contains(t, seen.String(), "\n"+strings.Repeat(" ", 39)+"short\n")
}

func many(n int) (errs []error) {
	for i := range n {
		errs = append(errs, fmt.Errorf("reason %d with a text that takes room", i))
	}
	return errs
}
