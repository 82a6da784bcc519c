// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

const statusLong = `Show the node's state: the last run of each agent, and the recorded, kept and
orphaned objects. It changes nothing, waits for no lock and asks no API server.

A line for each recorded object says what it was before, how an agent has left
it, and which steps of which agents want it. It does not look for drift: check
does. The exit status is 0 if the last runs succeeded and nothing is pending, 1
if one failed, if records cannot be read, or if the node has objects of an agent
and no record of any, 2 if there is something to do, and 3 if the node's owner
is not --owner.

The fields of --output=json are stable: stateDir, state (well, todo, others or
failed), error, agents (name, state, owner, generation, since, seen, undoing,
alive, changed, found, adopted, ended, begun, kept, todo, error, and lastRun:
time, command, result, version, node, owner, summary, step, code, error, cause,
remedy), records (kind, object, id, original, left, claims, causes, begun,
kept), damaged (ids), left (ids) and orphans (agent, kind, object, dir,
remove). A code is one of CODES.md.`

func (a *app) status(cmd *cobra.Command, _ []string) error {
	only := ""
	if a.flag("agent").given {
		only = a.agent
	}
	return a.showStatus(cmd.Context(), only)
}

// The states of an agent and of the node.
const (
	stateFailed = "failed" // the last run, or the records cannot be read
	stateOthers = "others" // the node has another owner
	stateTodo   = "todo"
	stateWell   = "well"
)

// nodeStatus is the output of status, in JSON too.
type nodeStatus struct {
	StateDir string          `json:"stateDir"`
	State    string          `json:"state"`
	Agents   []agentStatus   `json:"agents"`
	Records  []ledger.Record `json:"records"`
	Damaged  []string        `json:"damaged"`
	Left     []string        `json:"left"` // for good, with an agent's mark
	Orphans  []ledger.Marked `json:"orphans"`
	Error    string          `json:"error,omitempty"`
}

type agentStatus struct {
	ledger.Agent
	State   string     `json:"state"`
	LastRun *runStatus `json:"lastRun"` // null: it was cut short, or nothing was done
	Changed int        `json:"changed"` // objects that its steps want and agents have changed
	Found   int        `json:"found"`   // objects that were found as its steps want them
	Adopted int        `json:"adopted"` // of the recorded objects
	Begun   int        `json:"begun"`   // by a run that was cut short
	Kept    int        `json:"kept"`    // since it was changed by others
	Todo    []string   `json:"todo"`
	Error   string     `json:"error,omitempty"`
}

// runStatus is the outcome of a run. The last five fields describe the first failure.
type runStatus struct {
	Time    time.Time `json:"time"`
	Command string    `json:"command"`
	Result  string    `json:"result"`
	Version string    `json:"version,omitempty"`
	Node    string    `json:"node,omitempty"`
	Owner   string    `json:"owner"`
	Summary string    `json:"summary"`
	Step    string    `json:"step,omitempty"` // empty: the plan itself
	Code    string    `json:"code,omitempty"`
	Error   string    `json:"error,omitempty"`
	Cause   string    `json:"cause,omitempty"`
	Remedy  string    `json:"remedy,omitempty"`
}

// showStatus shows the status of all agents, or of one, and reports the state by its error.
func (a *app) showStatus(ctx context.Context, only string) error {
	if err := a.needBook(ctx); a.book == nil {
		return err
	}
	v := a.nodeStatus(ctx, only) // also if a part cannot be read
	err := context.Cause(ctx)
	if err != nil {
		return err
	}
	if a.shown = true; a.output == formatJSON {
		err = a.writeJSON(v)
	} else {
		_, err = fmt.Fprint(a.stdout, v.text())
	}
	if err != nil {
		return err
	}
	switch v.State {
	case stateFailed:
		return errors.New("not well: see the status above")
	case stateOthers:
		return fmt.Errorf("%w, and this is %q", ledger.ErrNotOwner, a.owner)
	case stateTodo:
		return errChanges
	}
	return nil
}

// nodeStatus collects the status. An unreadable part hides no other.
func (a *app) nodeStatus(ctx context.Context, only string) nodeStatus {
	v := nodeStatus{StateDir: a.stateDir, Agents: []agentStatus{}, Records: []ledger.Record{}, Damaged: []string{}, Left: []string{}, Orphans: []ledger.Marked{}}
	agents, err := a.agents(ctx)
	recorded, statusErr := a.book.Status(ctx)
	for _, r := range recorded.Records {
		if only == "" || claimOf(r, only) >= 0 {
			v.Records = append(v.Records, r)
		}
	}
	v.Damaged, v.Left = append(v.Damaged, recorded.Damaged...), append(v.Left, recorded.Left...)
	for _, agent := range agents {
		if only == "" || agent.Name == only {
			v.Agents = append(v.Agents, a.agentStatus(ctx, agent, v.Records))
		}
	}
	orphans, orphansErr := a.orphans(ctx)
	for _, m := range orphans {
		if only == "" || m.Agent == "" || m.Agent == only {
			v.Orphans = append(v.Orphans, m)
		}
	}
	if err := cmp.Or(err, statusErr, orphansErr); err != nil {
		v.Error = err.Error()
	}
	v.State = v.worst()
	return v
}

// worst is the state of the node: what cannot be read comes first, then the owner. Objects
// of agents that nothing is recorded of were prepared with another state directory, or it is
// lost.
func (v nodeStatus) worst() string {
	has := func(state string) bool {
		return slices.ContainsFunc(v.Agents, func(a agentStatus) bool { return a.State == state })
	}
	unread := slices.ContainsFunc(v.Agents, func(a agentStatus) bool { return a.Error != "" })
	switch {
	case v.Error != "" || unread || len(v.Damaged) > 0 || len(v.Orphans) > 0 && len(v.Agents)+len(v.Records) == 0:
		return stateFailed
	case has(stateOthers):
		return stateOthers
	case has(stateFailed):
		return stateFailed
	case has(stateTodo) || len(v.Orphans) > 0:
		return stateTodo
	}
	return stateWell
}

func (a *app) agentStatus(ctx context.Context, agent ledger.Agent, records []ledger.Record) agentStatus {
	v := agentStatus{Agent: agent, State: stateWell, Todo: []string{}}
	for _, r := range records {
		v.count(r)
	}
	var err error
	if v.LastRun, err = a.lastRun(ctx, agent.Name); err != nil {
		v.Error = err.Error()
	}
	v.Todo = append(v.Todo, v.todo()...)
	switch {
	case err != nil:
		v.State = stateFailed
	case a.owner != "" && agent.Name == a.agent && agent.Generation > 0 && agent.Owner != a.owner:
		v.State = stateOthers
	case v.LastRun != nil && v.LastRun.Result == stateFailed:
		v.State = stateFailed
	case len(v.Todo) > 0:
		v.State = stateTodo
	}
	return v
}

// claimOf is the index of the agent's first claim, or negative.
func claimOf(r ledger.Record, agent string) int {
	return slices.IndexFunc(r.Claims, func(c ledger.Claim) bool { return c.Agent == agent })
}

func (v *agentStatus) count(r ledger.Record) {
	i := claimOf(r, v.Name)
	if i < 0 {
		return
	}
	if !r.Begun && r.Left.Equal(r.Original) {
		v.Found++
	} else {
		v.Changed++
	}
	if r.Claims[i].Adopted {
		v.Adopted++
	}
	if r.Begun {
		v.Begun++
	}
	if r.Kept != "" {
		v.Kept++
	}
}

// todo lists the remaining work.
func (v *agentStatus) todo() (todo []string) {
	if v.LastRun == nil && v.Changed > 0 && v.Error == "" || v.Begun > 0 {
		todo = append(todo, "a run was interrupted: apply again, or uninstall")
	}
	if v.Ended > 0 {
		todo = append(todo, "the node was rebooted: apply again, or uninstall")
	}
	if v.Kept > 0 {
		todo = append(todo, "kept objects were changed by others: nodeinit forget OBJECT leaves one for good, nodeinit uninstall --accept-kept all of them")
	}
	return todo
}

// lastRun reads the report of the agent's last run; nil if there is none.
func (a *app) lastRun(ctx context.Context, agent string) (*runStatus, error) {
	b, err := a.bookOf(ctx, &ledger.Ledger{Dir: a.stateDir, Agent: agent, NoOwner: true})
	if err != nil {
		return nil, err
	}
	text, when, err := b.LastReport(ctx)
	if err != nil || when.IsZero() {
		return nil, err
	}
	var report bootstrap.Report
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, fmt.Errorf("read the last report: %w", err)
	}
	run := &runStatus{
		Time: report.Start, Command: cmp.Or(report.Command, report.Op), Result: "ok", Version: report.Version, Node: report.Node,
		Owner: report.Owner, Summary: report.Summary(),
	}
	if run.Time.IsZero() {
		run.Time = when
	}
	if report.Failed() {
		step, failure := report.Cause()
		run.Result, run.Step, run.Code, run.Error = stateFailed, step, bootstrap.Code(failure), failure.Error()
		run.Cause, run.Remedy = bootstrap.Meaning(run.Code)
	}
	return run, nil
}

func (a *app) writeJSON(v any) error {
	e := json.NewEncoder(a.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
