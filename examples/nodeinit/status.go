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
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/cleanup"
)

func (a *app) statusCommand() *cobra.Command {
	var only string
	c := &cobra.Command{
		Use: "status", Args: arguments(0),
		Short: "Show the node's state: the last run of each agent, and the recorded, kept and orphaned objects",
		Long: `Show the node's state: the last run of each agent, and the recorded, kept and
orphaned objects. It changes nothing, waits for no lock and asks no API server.

It does not look for drift: check does. The exit status is 0 if the last runs
succeeded and nothing is pending, 1 if one failed or a journal cannot be read, 2
if there is something to do, and 3 if the node's owner is not --owner.

The fields of --output=json are stable: stateDir, state (well, todo, others or
failed), error, agents (agent, state, owner, generation, since, alive, recorded,
adopted, found, ended, begun, kept, todo, error, and lastRun: time, command,
result, version, node, owner, summary, step, code, error, cause, remedy) and
orphans (agent, kind, object, dir, remove). Those of begun and kept are objects
(kind, object, step, time). A code is one of CODES.md.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.agent = cmp.Or(only, cleanup.Cilium().Agent)
			if err := a.journalAsked(); err != nil {
				return err
			}
			return a.showStatus(cmd.Context(), only)
		},
	}
	f := c.Flags()
	f.StringVar(&only, "agent", "", "show this agent only (default: all of them; then --owner is "+cleanup.Cilium().Agent+"'s)")
	f.StringVar(&a.stateDir, "state-dir", defaultStateDir, "directory of the journal, on the host")
	f.StringVar(&a.owner, "owner", "", "owner on whose behalf this runs, such as a pod's UID; empty: none")
	f.StringVar(&a.sysctlConfDir, "sysctl-conf-dir", defaultSysctlConfDir, "directory of the sysctl drop-in, on the host")
	a.outputFlag(f)
	return c
}

// The states of an agent and of the node. The first one that counts is the node's.
const (
	stateFailed = "failed" // the last run, or the journal cannot be read
	stateOthers = "others" // the node has another owner
	stateTodo   = "todo"
	stateWell   = "well"
)

// nodeStatus is the output of status, in JSON too.
type nodeStatus struct {
	StateDir string         `json:"stateDir"`
	State    string         `json:"state"`
	Agents   []agentStatus  `json:"agents"`
	Orphans  []orphanStatus `json:"orphans"`
	Error    string         `json:"error,omitempty"`
}

type agentStatus struct {
	Agent      string         `json:"agent"`
	State      string         `json:"state"`
	Owner      string         `json:"owner"`
	Generation int            `json:"generation"`
	Since      time.Time      `json:"since,omitzero"`
	Alive      string         `json:"alive,omitempty"` // the evidence
	LastRun    *runStatus     `json:"lastRun"`         // null: it was cut short, or nothing was done
	Recorded   int            `json:"recorded"`
	Adopted    int            `json:"adopted"` // of these
	Ended      int            `json:"ended"`   // of these, by a reboot
	Found      int            `json:"found"`   // wanted as it was found
	Begun      []objectStatus `json:"begun"`   // by a run that was cut short
	Kept       []objectStatus `json:"kept"`    // since it was changed by others
	Todo       []string       `json:"todo"`
	Error      string         `json:"error,omitempty"`

	damaged bool // the journal cannot be read
}

// runStatus is the outcome of a run. The last six fields describe the first failure.
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

type objectStatus struct {
	Kind   string    `json:"kind"`
	Object string    `json:"object"`
	Step   string    `json:"step"`
	Time   time.Time `json:"time,omitzero"`
}

type orphanStatus struct {
	Agent  string `json:"agent,omitempty"`
	Kind   string `json:"kind"`
	Object string `json:"object"`
	Dir    string `json:"dir,omitempty"` // the journal's that may have it
	Remove string `json:"remove"`
}

// showStatus shows the status of all agents, or of one, and reports the state by its error.
func (a *app) showStatus(ctx context.Context, only string) error {
	v := a.nodeStatus(ctx, only)
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	a.shown = true
	write := a.writeStatus
	if a.output == formatJSON {
		write = func(v nodeStatus) error { return a.writeJSON(v) }
	}
	if err := write(v); err != nil {
		return err
	}
	switch v.State {
	case stateFailed:
		return errors.New("not well: see the status above")
	case stateOthers:
		return fmt.Errorf("%w, and this is %q", journal.ErrNotOwner, a.owner)
	case stateTodo:
		return errChanges
	}
	return nil
}

// nodeStatus collects the status. An unreadable part hides no other.
func (a *app) nodeStatus(ctx context.Context, only string) nodeStatus {
	v := nodeStatus{StateDir: a.stateDir, State: stateWell, Agents: []agentStatus{}, Orphans: []orphanStatus{}}
	n := a.node(ctx)
	agents, err := n.Agents(ctx, a.host().Enter)
	if len(agents) == 0 && err == nil {
		err = a.openJournal(ctx) // which an older build may have written
	}
	for _, agent := range agents {
		if only == "" || agent.Name == only {
			v.Agents = append(v.Agents, a.agentStatus(ctx, agent))
		}
	}
	orphans, orphansErr := n.Orphans(ctx, a.host().Enter)
	for _, m := range orphans {
		if only == "" || m.Agent == "" || m.Agent == only {
			v.Orphans = append(v.Orphans, orphanStatus{m.Agent, m.Kind, m.Object, m.Dir, m.Remove})
		}
	}
	if err := cmp.Or(err, orphansErr); err != nil {
		v.Error = err.Error()
	}
	v.State = v.worst()
	return v
}

// worst is the state of the node: unreadable parts come first, then the owner.
func (v nodeStatus) worst() string {
	has := func(state string) bool {
		return slices.ContainsFunc(v.Agents, func(a agentStatus) bool { return a.State == state })
	}
	unread := slices.ContainsFunc(v.Agents, func(a agentStatus) bool { return a.Error != "" })
	switch {
	case v.Error != "" || unread:
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

// damaged reports whether the journal of an agent cannot be read.
func (v nodeStatus) damaged(agent string) bool {
	return slices.ContainsFunc(v.Agents, func(a agentStatus) bool { return a.Agent == agent && a.damaged })
}

// agentStatus asks an agent's journal, unless that is damaged.
func (a *app) agentStatus(ctx context.Context, agent journal.Agent) agentStatus {
	v := agentStatus{
		Agent: agent.Name, Owner: agent.Owner, Generation: agent.Generation, Since: agent.Since, Alive: agent.Alive,
		Recorded: agent.Entries, Found: agent.Found, Begun: []objectStatus{}, Kept: []objectStatus{}, Todo: []string{},
	}
	err := agent.Err
	if err == nil {
		err = a.ask(ctx, &v)
	}
	if err != nil {
		v.Error, v.damaged = err.Error(), errors.Is(err, journal.ErrUnreadable)
	}
	switch {
	case err != nil:
		v.State = stateFailed
	case a.owner != "" && agent.Name == a.agent && agent.Generation > 0 && agent.Owner != a.owner:
		v.State = stateOthers
	case v.LastRun != nil && v.LastRun.Result == stateFailed:
		v.State = stateFailed
	default:
		v.State = stateWell
	}
	if v.Todo = append(v.Todo, v.todo()...); len(v.Todo) > 0 && v.State == stateWell {
		v.State = stateTodo
	}
	return v
}

// ask completes the description of an agent from its journal.
func (a *app) ask(ctx context.Context, v *agentStatus) error {
	j, err := a.nodeOf(ctx, v.Agent).Open(ctx, a.host().Enter)
	if err != nil {
		return err
	}
	entries, err := j.Entries()
	for _, e := range entries {
		v.count(e, j.Boot())
	}
	report, when, reportErr := j.LastReport()
	if !when.IsZero() {
		v.LastRun, err = lastRun(report, when, err)
	}
	return errors.Join(err, reportErr, j.Close())
}

func (v *agentStatus) count(e journal.Entry, boot string) {
	o := objectStatus{e.Kind, e.Object, e.Step, e.Time}
	if e.Adopted {
		v.Adopted++
	}
	switch {
	case e.Kept:
		v.Kept = append(v.Kept, o)
	case e.Boot != "" && e.Boot != boot:
		v.Ended++
	case !e.Done:
		v.Begun = append(v.Begun, o)
	}
}

// todo lists the remaining work.
func (v *agentStatus) todo() (todo []string) {
	if v.damaged {
		todo = append(todo, "repair the journal as the error says: nodeinit uninstall then undoes what it still records, and each orphan names the command that removes it. "+
			"When nothing is recorded any more, nodeinit apply --adopt and then nodeinit uninstall remove the CNI files. Original values and replaced files are in the copy only")
	}
	if v.LastRun == nil && v.Recorded > 0 && v.Error == "" || len(v.Begun) > 0 {
		todo = append(todo, "a run was interrupted: apply again, or uninstall")
	}
	if v.Ended > 0 {
		todo = append(todo, "the node was rebooted: apply again, or uninstall")
	}
	if len(v.Kept) > 0 {
		todo = append(todo, "kept objects were changed by others: nodeinit journal forget OBJECT leaves one for good, nodeinit uninstall --accept-kept all of them")
	}
	return todo
}

// lastRun reads the report of a run.
func lastRun(text []byte, when time.Time, before error) (*runStatus, error) {
	var report bootstrap.Report
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, errors.Join(before, fmt.Errorf("read the last report: %w", err))
	}
	run := &runStatus{
		Time: report.Start, Command: cmp.Or(report.Command, string(report.Op)), Result: "ok", Version: report.Version, Node: report.Node,
		Owner: report.Owner, Summary: report.Summary(),
	}
	if run.Time.IsZero() {
		run.Time = when
	}
	if !report.Failed() {
		return run, before
	}
	run.Result, run.Code = stateFailed, report.Code()
	run.Cause, run.Remedy = bootstrap.Meaning(run.Code)
	step, failure := report.Cause()
	run.Step, run.Error = step, failure.Error()
	return run, before
}
