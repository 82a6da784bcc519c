// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/slipway-dev/slipway/bootstrap"
)

// The results of runs.
const (
	ready   = "ready"
	drifted = "drifted"
	failed  = "failed"
	garbled = "garbled"
)

// Outcome is the outcome of a run of an agent's plan, as reported to the cluster: the
// value of an annotation of the node, in JSON.
type Outcome struct {
	Agent string `json:"agent"`

	// Result is "ready" if the node is in the state that the plan describes, "drifted" if
	// a check found something to do, "failed" if something went wrong, and "garbled" if the
	// annotation cannot be read.
	Result string `json:"result"`

	Step    string `json:"step,omitempty"` // the step that failed, or has something to do
	Code    string `json:"code,omitempty"` // see bootstrap.Code
	Version string `json:"version,omitempty"`

	// Owner is the agent's owner that applied last, such as a pod's UID.
	Owner string `json:"owner,omitempty"`

	// Time is when this outcome was reported; each run since has had the same. Since is
	// when the status of the condition last changed.
	Time  time.Time `json:"time,omitzero"`
	Since time.Time `json:"since,omitzero"`

	// Message is the error, or what is to be done, in at most 500 bytes. It is in the
	// node's condition, but not in the annotation.
	Message string `json:"-"`
}

// OutcomeOf returns the outcome of a plan's report, without times.
func OutcomeOf(r *bootstrap.Report) Outcome {
	o := Outcome{Agent: r.Agent, Result: ready, Version: r.Version}
	if r.Op == "apply" {
		o.Owner = r.Owner
	}
	if step, err := r.Cause(); err != nil {
		o.Result, o.Step, o.Code, o.Message = failed, step, bootstrap.Code(err), short(err.Error())
		return o
	}
	var found []string
	for _, s := range r.Results {
		if s.Status == bootstrap.WouldChange || s.Status == bootstrap.Unknown {
			o.Result, o.Step = drifted, cmp.Or(o.Step, s.Step)
			found = append(found, s.Details()...)
		}
	}
	o.Message = short(strings.Join(found, "; "))
	return o
}

// maxMessage bounds a condition's and an event's message, in bytes: each is stored and
// sent with its node.
const maxMessage = 500

func short(text string) string {
	text = bootstrap.OneLine(text)
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage-3], "") + "..."
	}
	return text
}

// annotation is the key of a node's outcome, up to the agent's name; its value has at most
// maxReport bytes.
const (
	annotation = "report.slipway.dev/"
	maxReport  = 2 << 10
)

// Outcomes returns the outcomes in a node's annotations, by agent. The Result of an
// unreadable one is "garbled".
func Outcomes(annotations map[string]string) (all []Outcome) {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if agent, ok := strings.CutPrefix(key, annotation); ok {
			all = append(all, parse(agent, annotations[key]))
		}
	}
	return all
}

// parse reads an annotation. The key names the agent.
func parse(agent, text string) Outcome {
	var o Outcome
	if len(text) > maxReport || json.Unmarshal([]byte(text), &o) != nil || !slices.Contains([]string{ready, drifted, failed}, o.Result) {
		return Outcome{Agent: agent, Result: garbled}
	}
	o.Agent = agent
	return o
}

// Condition returns the type of the agent's own node condition, such as
// SlipwayCiliumReady.
func (o Outcome) Condition() string { return "Slipway" + camel(o.Agent) + "Ready" }

// status is the status of the condition.
func (o Outcome) status() string {
	if o.Result == ready {
		return "True"
	}
	return "False"
}

// reason is the reason of the condition: SysctlReadOnly for the code sysctl.read-only.
func (o Outcome) reason() string {
	if o.Result == failed {
		return camel(o.Code)
	}
	return camel(o.Result)
}

func camel(text string) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// sameCause reports whether both have the same result, for the same reason.
func (o Outcome) sameCause(other Outcome) bool {
	return o.Result == other.Result && o.Step == other.Step && o.Code == other.Code
}
