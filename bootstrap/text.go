// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slipway-dev/slipway/internal/printable"
)

// String returns the report as a table for people, as [TextTrace] writes it, with the errors
// of all steps and of the plan itself. Control characters that would affect a terminal are
// escaped, and credentials in URLs are left out.
func (r *Report) String() string {
	var b strings.Builder
	t := table{w: &b}
	for _, result := range r.Results {
		t.row(result, result.Details())
	}
	t.end(r)
	if r.Err != nil {
		for line := range strings.SplitSeq(r.Err.Error(), "\n") {
			b.WriteString("error: " + printable.Line(line) + "\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// TextTrace returns a Trace that writes runs to w for people: each step when it has ended, one
// line more for each further detail, and at the end those for which nothing was done, by reason,
// and the totals. What w gets is printable. Errors that the plan's method returns are left to the
// caller, who reports them once.
//
// On a terminal with that many columns, details are wrapped; 0 means that w is none. Paint may
// color the text of a status, unless it is nil.
func TextTrace(w io.Writer, columns int, paint func(s Status, text string) string) *Trace {
	t := table{w, columns, paint}
	return &Trace{
		StepDone: func(_ context.Context, _ string, r Result) {
			if r.Status == NotRun || r.Status == Failed && !r.Excused {
				r.Err = nil // which the method returns
			}
			t.row(r, r.Details())
		},
		PlanDone: func(_ context.Context, r *Report) { t.end(r) },
	}
}

// table writes a report for people.
type table struct {
	w       io.Writer
	columns int
	paint   func(s Status, text string) string
}

// row writes the result of a step, unless that is told at the end.
func (t table) row(r Result, details []string) {
	const before, least = 35, 20 // columns in front of the details, and what these need
	if r.isFolded() {
		return
	}
	status := fmt.Sprintf("%-12s", r.Status)
	if t.paint != nil {
		status = t.paint(r.Status, status)
	}
	text := strings.Join(details, "\n")
	if t.columns >= before+least {
		text = Wrap(text, "", t.columns-before)
	}
	head := fmt.Sprintf("  %-10s %s %7s", printable.Line(r.Step), status, short(r.Elapsed))
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintln(t.w, strings.TrimRight(head+"  "+line, " "))
		head = strings.Repeat(" ", before-2)
	}
	fmt.Fprint(t.w, r.Diff)
}

// isFolded reports whether the reason for which nothing was done in the step is all that there is
// to say.
func (r Result) isFolded() bool {
	given := r.Reason != "" && slices.Contains([]Status{Skipped, Unchanged, NotRun}, r.Status)
	return (given || r.Status == Blocked) && len(r.Details()) == 1
}

// end writes the steps for which nothing was done, by reason, and the totals.
func (t table) end(r *Report) {
	var reasons []string
	steps := map[string][]string{}
	status := map[string]Status{}
	for _, result := range r.Results {
		if !result.isFolded() {
			continue
		}
		reason := result.Details()[0]
		if steps[reason] == nil {
			reasons = append(reasons, reason)
		}
		steps[reason], status[reason] = append(steps[reason], result.Step), result.Status
	}
	for _, reason := range reasons {
		line := OneLine(fmt.Sprintf("%s: %s (%s)", status[reason], strings.Join(steps[reason], ", "), reason))
		if t.columns > 0 {
			line = Wrap(line, "    ", t.columns)
		}
		fmt.Fprintln(t.w, "  "+strings.TrimSpace(line))
	}
	total := r.Summary()
	if skipped := r.Count(Skipped); skipped > 0 && skipped == len(r.Results) {
		total += ", so nothing was done"
	}
	if r.Elapsed > 0 {
		total += " (" + short(r.Elapsed) + ")"
	}
	if r.Op == opApply && r.Agent != "" && r.Owner == "" {
		total += ", without an owner"
	}
	fmt.Fprintln(t.w, total)
}

// Wrap returns text in lines of at most columns, each after indent. Where text has line ends,
// so has the result; only a word that does not fit makes a line longer.
func Wrap(text, indent string, columns int) string {
	var lines []string
	for paragraph := range strings.SplitSeq(text, "\n") {
		line := ""
		for word := range strings.FieldsSeq(paragraph) {
			switch {
			case line == "":
				line = indent + word
			case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns:
				lines = append(lines, line)
				line = indent + word
			default:
				line += " " + word
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// OneLine returns text from outside, such as an error's, as one line for people: line
// ends become "; ", everything that is no visible character is escaped, credentials in
// URLs are left out, and no more than 8 KiB are shown.
func OneLine(s string) string {
	s = printable.Line(strings.ReplaceAll(strings.TrimSpace(s), "\n", "; "))
	if len(s) > longestLine {
		return fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(s[:longestLine], ""), len(s))
	}
	return s
}

// longestLine bounds text from outside, in bytes.
const longestLine = 8 << 10

// Printable returns a writer to w that escapes control characters that a terminal would
// obey, and keeps line ends: for a program's standard output and error. Above
// ASCII the escapes are those of JSON, so that a JSON document stays one. No character
// may be spread over two calls of Write.
func Printable(w io.Writer) io.Writer { return printable.Writer{W: w} }

// Details returns more about the step for people to read, line by line: its
// changes, why it was skipped, its advice, and its error without the step's name.
// Control characters that would affect a terminal are escaped, and credentials in
// URLs are left out.
func (r Result) Details() []string {
	details := append([]string(nil), r.Changes...)
	for _, object := range r.Adopted {
		details = append(details, "adopted: "+object)
	}
	if r.Reason != "" {
		details = append(details, r.Reason)
	}
	for _, advice := range r.Advice {
		details = append(details, "note: "+advice)
	}
	if r.Err != nil {
		text := r.Err.Error()
		var failure *StepError
		if errors.As(r.Err, &failure) {
			text = failure.Op + ": " + failure.Err.Error()
		}
		details = append(details, strings.Split(text, "\n")...)
	}
	for i, detail := range details {
		details[i] = printable.Line(detail)
	}
	return details
}

// Summary returns one line with the number of steps in total and for each status
// that occurs: "7 steps: 6 changed, 1 skipped".
func (r *Report) Summary() string {
	var counts []string
	for _, s := range []Status{Unchanged, WouldChange, Unknown, Changed, Failed, Skipped, Blocked, NotRun} {
		if n := r.Count(s); n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, s))
		}
	}
	switch len(r.Results) {
	case 0:
		return "no steps"
	case 1:
		return "1 step: " + string(r.Results[0].Status)
	}
	return fmt.Sprintf("%d steps: %s", len(r.Results), strings.Join(counts, ", "))
}

// short writes a time with as many digits as a reader wants.
func short(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
