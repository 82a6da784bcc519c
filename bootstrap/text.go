// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/slipway-dev/slipway/internal/printable"
)

// String returns the report as an aligned table for people: one line for each
// step, one more for each further change, a line of totals, and at the end the
// error of the plan itself, if there is one. Control characters that would affect a
// terminal are escaped, and credentials in URLs are left out.
func (r *Report) String() string {
	rows := [][]string{{"STEP", "STATUS", "TIME", "DETAIL"}}
	for _, result := range r.Results {
		rows = append(rows, result.rows()...)
	}
	text := table(rows) + "\n" + r.Summary()
	if r.Err != nil {
		for _, line := range strings.Split(r.Err.Error(), "\n") {
			text += "\nerror: " + printable.Line(line)
		}
	}
	return text
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

func (r Result) rows() (rows [][]string) {
	details := r.Details()
	if len(details) == 0 {
		details = []string{""}
	}
	head := []string{printable.Line(r.Step), string(r.Status), short(r.Elapsed)}
	for _, detail := range details {
		rows = append(rows, append(head, detail))
		head = []string{"", "", ""}
	}
	return rows
}

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

// table aligns the columns, and leaves no blank at a line's end.
func table(rows [][]string) string {
	var aligned, b strings.Builder
	w := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // to memory
	for line := range strings.Lines(aligned.String()) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
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
