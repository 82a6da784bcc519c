// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/printable"
)

// Status is the outcome of a step. Its text is part of the report's JSON.
type Status string

// The statuses that a step can have in a report.
const (
	Unchanged   Status = "unchanged"    // nothing to do
	WouldChange Status = "would-change" // a dry run found something to do
	Unknown     Status = "unknown"      // a dry run cannot tell before earlier steps have changed
	Changed     Status = "changed"      // done
	Failed      Status = "failed"       // tried, with an error
	Skipped     Status = "skipped"      // left out, or has nothing to revert
	Blocked     Status = "blocked"      // not tried, since a step that it needs failed
	NotRun      Status = "not-run"      // not tried, since the plan stopped before it
)

// Report lists the outcome of each step of a plan, in the order in which the steps
// ran.
type Report struct {
	// Op is what the plan was run for: "check", "apply", "check-revert" or "revert". It is
	// empty, and Start and Elapsed are zero, in a report that was not made by a plan.
	Op string `json:"op,omitempty"`

	// Node is the node's name, Version that of the program, and Command its command, as
	// the plan has them. They are empty where they are not known.
	Node    string `json:"node,omitempty"`
	Version string `json:"version,omitempty"`
	Command string `json:"command,omitempty"`

	// Agent is the agent that the plan belongs to, and Owner the owner it ran for; empty
	// if none is configured. Generation counts the node's owners; 0 if the node has
	// none. All three come from the plan's ledger.
	Agent      string `json:"agent,omitempty"`
	Owner      string `json:"-"`
	Generation int    `json:"generation,omitempty"`

	// Start is when the plan was run, and Elapsed how long that took, including all
	// waiting.
	Start   time.Time     `json:"start,omitzero"`
	Elapsed time.Duration `json:"-"`

	// Results has one entry for each step.
	Results []Result `json:"-"`

	// Steps are the plan's, as this run has completed them: what a step wants is in its Wants,
	// unless its own Prepare has failed. Nil if the plan's has, or none was called.
	Steps []Step `json:"-"`

	// Err is the failure of the plan itself, rather than of a step: the plan
	// is invalid, its lock could not be taken, or its ledger says that the node
	// has another owner. Nil otherwise.
	Err error `json:"-"`
}

// fail notes and returns an error of the plan itself.
func (r *Report) fail(err error) error {
	r.Err = errors.Join(r.Err, err)
	return err
}

// Result is the outcome of one step.
type Result struct {
	// Step is the step's name.
	Step string `json:"step"`

	// Status is the step's outcome.
	Status Status `json:"status"`

	// Reason is one line that explains why the step was skipped or has not run, if no
	// error does (see [Step.Skip]), or why a revert found nothing to do.
	Reason string `json:"reason,omitempty"`

	// Excused says that the step failed and is Optional: the plan has not failed by it.
	Excused bool `json:"excused,omitempty"`

	// Changes lists what would change, or was changed. In a failed step it lists what
	// was changed nevertheless, as far as another check can tell.
	Changes []string `json:"changes"`

	// Diff is how contents would change, as unified diffs, where [Plan].Diff asks for that. Values
	// that may be secret are masked, and control characters escaped.
	Diff string `json:"diff,omitempty"`

	// Adopted lists objects that were found as wanted, and count as made by the agent.
	Adopted []string `json:"adopted,omitempty"`

	// Advice is what an administrator should know, from the ledger and from an [Adviser]. In
	// a revert it lists what stays because others need it or have changed it.
	Advice []string `json:"advice,omitempty"`

	// Places are the paths on the host on which the step depends, of its objects and of what it
	// watches, each with its file system's type, or "". Nil if it is Local, or was not tried.
	Places map[string]string `json:"-"`

	// Err explains why the step failed, is unknown, is blocked, or has nothing to
	// revert, and in the first step that was not run because the context was done,
	// that: a [*StepError], except in a blocked step. Nil otherwise.
	Err error `json:"-"`

	// Elapsed is the time that the step took, with all its checks and its change.
	// Zero if the step was not tried, or had nothing to undo.
	Elapsed time.Duration `json:"-"`
}

// Count returns how many steps have one of the given statuses.
func (r *Report) Count(statuses ...Status) int {
	n := 0
	for _, result := range r.Results {
		if slices.Contains(statuses, result.Status) {
			n++
		}
	}
	return n
}

// Failed reports whether the plan's method that made the report returned an error.
func (r *Report) Failed() bool {
	return r.Err != nil || slices.ContainsFunc(r.Results, func(result Result) bool {
		return result.Status == NotRun || result.Status == Failed && !result.Excused
	})
}

// Changed reports whether any step is Changed, WouldChange or Unknown: whether the
// plan changed anything that it knows of or, after a dry run, would or might.
func (r *Report) Changed() bool {
	return r.Count(Changed, WouldChange, Unknown) > 0
}

// The forms of a report and of a result in JSON.
type (
	reportJSON struct {
		plainReport
		Owner     *string      `json:"owner,omitempty"`
		ElapsedMs float64      `json:"elapsedMs,omitempty"`
		Code      string       `json:"code,omitempty"`
		Error     string       `json:"error,omitempty"`
		Results   []resultJSON `json:"results"`
	}
	resultJSON struct {
		plainResult
		Code      string  `json:"code,omitempty"`
		Error     string  `json:"error,omitempty"`
		ElapsedMs float64 `json:"elapsedMs"`
	}
	plainReport Report
	plainResult Result
)

// MarshalJSON writes an object with "op", "node", "version", "command", "agent",
// "generation", "start" (RFC 3339), "owner", "elapsedMs" (milliseconds, with microseconds as a
// fraction), "code" (of [Report.Cause]) and "error", each left out if it is zero, and
// "results" (never null). An owner that is empty, beside an agent, means that none is
// configured. A result has "step", "status", "changes" (never null) and "elapsedMs", and,
// unless it is zero, "reason", "excused", "diff", "adopted", "advice", "code" and "error".
func (r Report) MarshalJSON() ([]byte, error) {
	_, cause := r.Cause()
	out := reportJSON{
		plainReport: plainReport(r), ElapsedMs: milliseconds(r.Elapsed), Code: Code(cause), Error: errorText(r.Err), Results: []resultJSON{},
	}
	if r.Agent != "" || r.Owner != "" {
		out.Owner = &r.Owner
	}
	for _, result := range r.Results {
		result.Changes = append([]string{}, result.Changes...)
		out.Results = append(out.Results, resultJSON{plainResult(result), result.code(), errorText(result.Err), milliseconds(result.Elapsed)})
	}
	return marshal(out)
}

// UnmarshalJSON reads what MarshalJSON has written. Of an error, only its text and
// its code survive.
func (r *Report) UnmarshalJSON(text []byte) error {
	var in reportJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return fmt.Errorf("decode report: %w", err)
	}
	*r = Report(in.plainReport)
	r.Elapsed, r.Err = duration(in.ElapsedMs), textError(in.Error, in.Code)
	if in.Owner != nil {
		r.Owner = *in.Owner
	}
	for _, of := range in.Results {
		result := Result(of.plainResult)
		result.Elapsed, result.Err = duration(of.ElapsedMs), textError(of.Error, of.Code)
		r.Results = append(r.Results, result)
	}
	return nil
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return printable.NoCredentials(err.Error())
}

func textError(text, its string) error {
	if text == "" {
		return nil
	}
	return code.New(its, text)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func duration(ms float64) time.Duration {
	return time.Duration(math.Round(ms*1000)) * time.Microsecond
}

// marshal leaves <, > and & as they are: reports are read by people too.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode report: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// maxKept is the size of a report that a ledger keeps.
const maxKept = 256 << 10

// kept is the part of the report that a ledger keeps: without changes and advice, if
// it would be too large.
func (r *Report) kept() []byte {
	text, err := json.Marshal(r)
	if err == nil && len(text) <= maxKept {
		return text
	}
	short := *r
	short.Results = slices.Clone(r.Results)
	for i := range short.Results {
		short.Results[i].Changes, short.Results[i].Advice = nil, nil
	}
	if text, err = json.Marshal(&short); err != nil || len(text) > maxKept {
		short.Results = nil
		text, _ = json.Marshal(&short) // of strings and numbers
	}
	return text
}
