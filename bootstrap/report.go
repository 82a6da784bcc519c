// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	// Op is what the plan was run for. Start is when it was run, and Elapsed how
	// long that took, including all waiting. All three are zero in a report that was
	// not made by a plan.
	Op      Op
	Start   time.Time
	Elapsed time.Duration

	// Node is the node's name, Version that of the program, and Command its command, as
	// the plan has them. They are empty where they are not known.
	Node, Version, Command string

	// Agent is the agent that the plan belongs to, and Owner the owner it ran for; empty
	// if none is configured. Generation counts the node's owners; 0 if the node has
	// none. All three come from the plan's ledger.
	Agent, Owner string
	Generation   int

	// Results has one entry for each step.
	Results []Result

	// Err is the failure of the plan itself, rather than of a step: the plan
	// is invalid, its lock could not be taken, or its ledger says that the node
	// has another owner. Nil otherwise.
	Err error
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
	// error does (see [Step.SkipReason]), or why a revert found nothing to do.
	Reason string `json:"reason,omitempty"`

	// Excused says that the step failed and is Optional: the plan has not failed by it.
	Excused bool `json:"excused,omitempty"`

	// Changes lists what would change, or was changed. In a failed step it lists what
	// was changed nevertheless, as far as another check can tell.
	Changes []string `json:"changes"`

	// Adopted lists objects that were found as wanted, and count as made by the agent.
	Adopted []string `json:"adopted,omitempty"`

	// Advice is what an administrator should know, from the ledger and from an [Adviser]. In
	// a revert it lists what stays because others need it or have changed it.
	Advice []string `json:"advice,omitempty"`

	// Err explains why the step failed, is unknown, is blocked, or has nothing to
	// revert, and in the first step that was not run because the context was done,
	// that: a [*StepError], except in a blocked step. Nil otherwise.
	Err error `json:"-"`

	certain bool // the failure has nothing to do with what earlier steps may change

	// Elapsed is the time that the step took, with all its checks and its change.
	// Zero if the step was not tried, or was undone together with all others.
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

// reportJSON is the form of a report in JSON.
type reportJSON struct {
	Op         Op        `json:"op,omitempty"`
	Node       string    `json:"node,omitempty"`
	Version    string    `json:"version,omitempty"`
	Command    string    `json:"command,omitempty"`
	Agent      string    `json:"agent,omitempty"`
	Owner      *string   `json:"owner,omitempty"`
	Generation int       `json:"generation,omitempty"`
	Start      time.Time `json:"start,omitzero"`
	ElapsedMs  float64   `json:"elapsedMs,omitempty"`
	Code       string    `json:"code,omitempty"`
	Error      string    `json:"error,omitempty"`
	Results    []Result  `json:"results"`
}

// MarshalJSON writes an object with "op", "node", "version", "command", "agent",
// "owner", "generation", "start" (RFC 3339), "elapsedMs", "code" (see [Report.Code]) and
// "error", each left out if it is zero, and "results" (never null), as
// [Result.MarshalJSON] writes them. An owner that is empty, beside an agent, means
// that none is configured.
func (r Report) MarshalJSON() ([]byte, error) {
	out := reportJSON{
		Op: r.Op, Node: r.Node, Version: r.Version, Command: r.Command, Agent: r.Agent, Generation: r.Generation,
		Start: r.Start, ElapsedMs: milliseconds(r.Elapsed), Code: r.Code(), Error: errorText(r.Err), Results: noNil(r.Results),
	}
	if r.Agent != "" || r.Owner != "" {
		out.Owner = &r.Owner
	}
	return marshal(out)
}

// UnmarshalJSON reads what MarshalJSON has written. Of an error, only its text and
// its code survive.
func (r *Report) UnmarshalJSON(text []byte) error {
	var owner string
	in := reportJSON{Owner: &owner}
	if err := json.Unmarshal(text, &in); err != nil {
		return fmt.Errorf("decode report: %w", err)
	}
	*r = Report{
		Op: in.Op, Node: in.Node, Version: in.Version, Command: in.Command, Agent: in.Agent, Owner: owner, Generation: in.Generation,
		Start: in.Start, Elapsed: duration(in.ElapsedMs), Results: in.Results, Err: textError(in.Error, in.Code),
	}
	return nil
}

// resultJSON is the form of a result in JSON.
type resultJSON struct {
	plainResult
	Code      string  `json:"code,omitempty"`
	Error     string  `json:"error,omitempty"`
	ElapsedMs float64 `json:"elapsedMs"`
}

type plainResult Result

// MarshalJSON writes one object with "step", "status", "reason" (left out if there is
// none), "excused" (left out if it is not), "changes" (never null), "adopted", "advice", "code"
// (see [Result.Code]) and "error" (left out if there is none) and "elapsedMs"
// (milliseconds, with microseconds as a fraction).
func (r Result) MarshalJSON() ([]byte, error) {
	r.Changes = noNil(r.Changes)
	return marshal(resultJSON{plainResult(r), r.Code(), errorText(r.Err), milliseconds(r.Elapsed)})
}

// UnmarshalJSON reads what MarshalJSON has written. Of an error, only its text and
// its code survive.
func (r *Result) UnmarshalJSON(text []byte) error {
	var in resultJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return fmt.Errorf("decode result: %w", err)
	}
	*r = Result(in.plainResult)
	r.Err, r.Elapsed = textError(in.Error, in.Code), duration(in.ElapsedMs)
	return nil
}

// noNil returns list, which is never null in JSON.
func noNil[T any](list []T) []T { return append([]T{}, list...) }

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

// WriteJSON writes the report as one indented JSON document and a newline.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
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
