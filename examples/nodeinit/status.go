// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

The fields of --output=json are stable: stateDir, state (ok, pending, not-owner
or failed), error, agents (name, state, owner, generation, since, seen, alive,
ended, todo, error, and lastRun, a report as apply prints it), records (kind,
object, id, original, left, claims, causes, begun, kept), damaged (ids), left
(ids) and orphans (agent, kind, object, dir, remove). A code in a report is one
of CODES.md.`

// The states of an agent and of the node.
const (
	stateOK       = "ok"
	statePending  = "pending"   // there is something to do
	stateNotOwner = "not-owner" // the node has another owner
	stateFailed   = "failed"    // the last run, or the records cannot be read
)

// nodeStatus is the output of status, in JSON too.
type nodeStatus struct {
	StateDir string          `json:"stateDir"`
	State    string          `json:"state"`
	Agents   []agentStatus   `json:"agents"`
	Records  []ledger.Record `json:"records"`
	Damaged  []string        `json:"damaged"`
	Left     []string        `json:"left"` // in place, with an agent's mark and no record
	Orphans  []ledger.Marked `json:"orphans"`
	Error    string          `json:"error,omitempty"`
	butOf    string
}

type agentStatus struct {
	ledger.Agent
	State   string            `json:"state"`
	LastRun *bootstrap.Report `json:"lastRun"` // null: it was interrupted, or nothing was done
	Todo    []string          `json:"todo"`
	Error   string            `json:"error,omitempty"`
}

func (a *app) status(cmd *cobra.Command, _ []string) error {
	ctx := cmd.Context()
	if err := a.needBook(ctx); a.book == nil {
		return err
	}
	v := a.nodeStatus(ctx) // also if a part cannot be read
	err := context.Cause(ctx)
	if err != nil {
		return err
	}
	if a.shown = true; a.output == formatJSON {
		err = a.writeJSON(v)
	} else {
		_, err = fmt.Fprint(a.stdout, v.text())
	}
	switch {
	case err != nil:
		return err
	case v.State == stateFailed:
		return errors.New("the node needs attention: see its status")
	case v.State == stateNotOwner:
		return fmt.Errorf("%w, and this is %q", ledger.ErrNotOwner, a.owner)
	case v.State == statePending:
		return errChanges
	}
	return nil
}

// nodeStatus collects the status. An unreadable part hides no other.
func (a *app) nodeStatus(ctx context.Context) nodeStatus {
	agents, err := a.agents(ctx)
	recorded, recordsErr := a.book.Status(ctx)
	orphans, orphansErr := a.orphans(ctx)
	one := a.flag("agent").given
	isOther := func(agent string) bool { return one && agent != a.agent }
	records := slices.DeleteFunc(recorded.Records, func(r ledger.Record) bool { return one && claimOf(r, a.agent) < 0 })
	orphans = slices.DeleteFunc(orphans, func(m ledger.Marked) bool { return m.Agent != "" && isOther(m.Agent) })
	v := nodeStatus{
		StateDir: a.stateDir, Agents: []agentStatus{}, Records: append([]ledger.Record{}, records...), Orphans: append([]ledger.Marked{}, orphans...),
		Damaged: append([]string{}, recorded.Damaged...), Left: append([]string{}, recorded.Left...),
	}
	for _, agent := range agents {
		if !isOther(agent.Name) {
			v.Agents = append(v.Agents, a.agentStatus(agent, records))
		}
	}
	if len(v.Agents) == 0 {
		v.butOf = butOf(a.agent, agents)
	}
	if err := cmp.Or(err, recordsErr, orphansErr); err != nil {
		v.Error = err.Error()
		if errors.Is(err, ledger.ErrUnreadable) {
			v.Error += " (nodeinit forget --damaged)"
		}
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
	case has(stateNotOwner):
		return stateNotOwner
	case has(stateFailed):
		return stateFailed
	case has(statePending) || len(v.Orphans) > 0:
		return statePending
	}
	return stateOK
}

func (a *app) agentStatus(agent ledger.Agent, records []ledger.Record) agentStatus {
	v := agentStatus{Agent: agent, State: stateOK, Todo: []string{}}
	if agent.Report != nil {
		v.LastRun = &bootstrap.Report{}
		if err := v.LastRun.UnmarshalJSON(agent.Report); err != nil {
			v.LastRun, v.Error = nil, fmt.Sprintf("the last report: %v", err)
		} else {
			v.addExcused()
		}
	}
	v.addTodo(records)
	switch {
	case v.Error != "":
		v.State = stateFailed
	case a.owner != "" && agent.Name == a.agent && agent.Generation > 0 && agent.Owner != a.owner:
		v.State = stateNotOwner
	case v.LastRun != nil && v.LastRun.Failed():
		v.State = stateFailed
	case len(v.Todo) > 0:
		v.State = statePending
	}
	return v
}

// addExcused adds the optional steps that failed, without which the last run went on.
func (v *agentStatus) addExcused() {
	for _, r := range v.LastRun.Results {
		if r.Excused {
			v.Todo = append(v.Todo, fmt.Sprintf("look at the optional step %s, which failed: %v", r.Step, r.Err))
		}
	}
}

// claimOf is the index of the agent's first claim, or negative.
func claimOf(r ledger.Record, agent string) int {
	return slices.IndexFunc(r.Claims, func(c ledger.Claim) bool { return c.Agent == agent })
}

// addTodo lists the remaining work.
func (v *agentStatus) addTodo(records []ledger.Record) {
	changed, begun, kept := false, false, false
	for _, r := range records {
		if claimOf(r, v.Name) >= 0 {
			changed, begun, kept = changed || !r.Left.Equal(r.Original), begun || r.Begun, kept || r.Kept != ""
		}
	}
	if begun || changed && v.LastRun == nil && v.Error == "" {
		v.Todo = append(v.Todo, "a run was interrupted: apply again, or uninstall")
	}
	if v.Ended > 0 {
		v.Todo = append(v.Todo, "the node was rebooted: apply again, or uninstall")
	}
	if kept {
		v.Todo = append(v.Todo, "other programs changed objects, which are therefore kept: nodeinit forget OBJECT leaves one as it is, nodeinit uninstall --accept-kept all of them")
	}
}

// text is the status for people, on a terminal of 80 columns. Only a word that does not fit,
// such as a path, makes a line longer.
func (v nodeStatus) text() string {
	var b strings.Builder
	head := v.StateDir + ": " + v.State
	if len(v.Agents)+len(v.Records)+len(v.Damaged) == 0 && v.Error == "" {
		head += "; nothing is recorded" + v.butOf
	}
	item(&b, "", head)
	field(&b, "error", v.Error)
	for _, m := range v.Orphans {
		field(&b, "orphan", orphanText(m))
	}
	for _, agent := range v.Agents {
		agent.write(&b)
	}
	if len(v.Records) > 0 {
		item(&b, "", "recorded:")
	}
	for _, r := range v.Records {
		item(&b, "  ", r.String())
	}
	for _, id := range v.Damaged {
		item(&b, "  ", id+": its record is damaged; nodeinit forget OBJECT drops the record, and leaves the object as it is")
	}
	for _, id := range v.Left {
		item(&b, "  ", id+": left in place, and no longer recorded")
	}
	return b.String()
}

// orphanText says what removes an object that is not recorded.
func orphanText(m ledger.Marked) string {
	what := m.Kind + " " + m.Object
	if m.Agent != "" {
		what += " of agent " + m.Agent
	}
	dir := "the --state-dir that it was made with"
	if m.Dir != "" {
		dir = "--state-dir=" + m.Dir
	}
	return what + ", not recorded here: uninstall it with " + dir + ", or if that is lost, remove it: " + m.Remove
}

func (v agentStatus) write(b *strings.Builder) {
	item(b, "", "agent "+v.Name+": "+v.State)
	field(b, "error", v.Error)
	if r := v.LastRun; r == nil {
		field(b, "last run", "unknown")
	} else {
		by := ""
		if r.Version != "" {
			by = ", version " + r.Version
		}
		if r.Owner != "" {
			by += fmt.Sprintf(", owner %q", r.Owner)
		}
		field(b, "last run", fmt.Sprintf("%s, %s%s; %s", cmp.Or(r.Command, r.Op), age(r.Start), by, r.Summary()))
		_, failure := r.Cause()
		_, remedy := bootstrap.Meaning(bootstrap.Code(failure))
		if failure != nil {
			field(b, "failed", fmt.Sprintf("%v [%s]", failure, bootstrap.Code(failure)))
		}
		field(b, "remedy", remedy)
	}
	alive := "no sign that it is running"
	switch {
	case v.Alive != "":
		alive = v.Alive
	case v.AliveErr != nil:
		alive = "whether it is running is unknown: " + v.AliveErr.Error()
	}
	if v.Generation > 0 {
		field(b, "owner", fmt.Sprintf("%q, generation %d, since %s; %s", v.Owner, v.Generation, age(v.Since), alive))
	}
	field(b, "last seen", age(v.Seen))
	for _, todo := range v.Todo {
		field(b, "to do", todo)
	}
}

// age is how long ago t was, in words.
func age(t time.Time) string {
	switch past := time.Since(t); {
	case t.IsZero():
		return "never"
	case past < time.Minute:
		return "just now"
	case past < 48*time.Hour:
		return strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(past.Truncate(time.Minute).String()) + " ago"
	default:
		return fmt.Sprintf("%d days ago", past/(24*time.Hour))
	}
}

const columns = 80

// field writes a label and a text, if there is one.
func field(b *strings.Builder, label, text string) {
	if text != "" {
		lines := bootstrap.Wrap(bootstrap.OneLine(text), strings.Repeat(" ", 12), columns)
		fmt.Fprintf(b, "  %-10s%s\n", label, strings.TrimLeft(lines, " "))
	}
}

// item writes a text, after indent.
func item(b *strings.Builder, indent, text string) {
	lines := bootstrap.Wrap(bootstrap.OneLine(text), indent+"  ", columns)
	b.WriteString(indent + strings.TrimLeft(lines, " ") + "\n")
}
