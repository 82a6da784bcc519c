// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/bootstrap"
)

// progress shows a plan as it runs, one line per step. On a terminal the line appears at
// the step's start and is replaced at its end.
type progress struct {
	w        io.Writer
	terminal *screen // nil: there is none
}

// screen is a terminal that, while a step runs, ends with an unfinished line. Other output
// to the terminal comes before that line.
type screen struct {
	w     io.Writer
	width int // in columns; 0: not known
	mu    sync.Mutex
	line  string
}

// show replaces the unfinished line, or removes it if the text is empty.
func (s *screen) show(line string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line = line
	fmt.Fprint(s.w, "\r\033[K"+line)
}

// beside returns a writer of whole lines to the same terminal.
func (s *screen) beside(w io.Writer) io.Writer { return &besideScreen{s, w} }

type besideScreen struct {
	screen *screen
	w      io.Writer
}

func (b *besideScreen) Write(p []byte) (int, error) {
	s := b.screen
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line == "" {
		return b.w.Write(p)
	}
	fmt.Fprint(s.w, "\r\033[K")
	n, err := b.w.Write(p)
	fmt.Fprint(s.w, s.line)
	return n, err
}

func (p *progress) trace() *bootstrap.Trace {
	return &bootstrap.Trace{StepStart: p.start, StepDone: p.done}
}

func (p *progress) start(ctx context.Context, _ string, step string) context.Context {
	p.terminal.show(fmt.Sprintf("  %-12s ...", bootstrap.OneLine(step)))
	return ctx
}

func (p *progress) done(_ context.Context, _ string, r bootstrap.Result) {
	p.terminal.show("")
	details := p.folded(r.Details())
	first := ""
	if len(details) > 0 {
		first = details[0]
	}
	line := fmt.Sprintf("  %-12s %-12s %8s  %s", bootstrap.OneLine(r.Step), r.Status, elapsed(r.Elapsed), first)
	fmt.Fprintln(p.w, strings.TrimRight(line, " "))
	for i, d := range details {
		if i > 0 {
			fmt.Fprintf(p.w, "%37s  %s\n", "", d)
		}
	}
}

// folded are the details in lines that fit beside the other columns, on a terminal.
func (p *progress) folded(details []string) (lines []string) {
	const before, least = 39, 20
	if p.terminal == nil || p.terminal.width < before+least {
		return details // a script may search them
	}
	for _, detail := range details {
		lines = append(lines, strings.Split(wrapped(detail, "", p.terminal.width-before), "\n")...)
	}
	return lines
}

func elapsed(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}
