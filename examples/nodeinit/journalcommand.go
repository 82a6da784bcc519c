// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/journal"
)

func (a *app) journalCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "journal", Args: arguments(0),
		Short: "Show the node's owner and the changes recorded for uninstall",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.journalAsked(); err != nil {
				return err
			}
			return a.showJournal(cmd.Context())
		},
	}
	a.outputFlag(c.Flags())
	a.journalFlags(c.PersistentFlags())
	c.AddCommand(a.journalForgetCommand(), a.journalReleaseCommand())
	return c
}

func (a *app) journalForgetCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "forget OBJECT", Args: cobra.ExactArgs(1),
		Short: "Drop the entry of an object that cannot be undone, without undoing it",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needsRoot(os.Geteuid(), "journal forget"); err != nil {
				return err
			}
			if err := a.needJournal(cmd); err != nil {
				return err
			}
			if err := a.mayUndo(cmd); err != nil {
				return err
			}
			return a.locked(cmd.Context(), func() error {
				dropped, err := a.journal.ForgetObject(cmd.Context(), args[0])
				a.writeEntries("forgot", dropped)
				return err
			})
		},
	}
	a.lockFlags(c.Flags())
	a.undoFlags(c)
	return c
}

func (a *app) journalReleaseCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "release --agent NAME", Args: arguments(0),
		Short: "Give up the entries of an agent that has gone, without undoing them",
		Long: "Give up the entries of an agent that has gone, whatever its owner and its entries. Objects that other agents want are " +
			"then theirs; those that none of them wants are listed, and left in place for good.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("agent") {
				return usageError{errors.New("name the agent that has gone: --agent")}
			}
			if err := needsRoot(os.Geteuid(), "journal release"); err != nil {
				return err
			}
			if err := a.journalAsked(); err != nil {
				return err
			}
			return a.locked(cmd.Context(), func() error { return a.release(cmd.Context()) })
		},
	}
	a.outputFlag(c.Flags())
	a.lockFlags(c.Flags())
	c.Flags().BoolVar(&a.force, "force", false, "also while the agent is running")
	return c
}

// release gives up the agent's entries, unless it is alive.
func (a *app) release(ctx context.Context) error {
	n := a.nodeOf(ctx, a.agent)
	n.AnyOwner = true // it is gone
	agents, err := n.Agents(ctx, a.host().Enter)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(agents, func(agent journal.Agent) bool { return agent.Name == a.agent })
	if i < 0 {
		return a.writeReleased(0, nil)
	}
	if err := a.hasGone(ctx, agents[i]); err != nil && !a.force {
		return fmt.Errorf("release agent %q: %w (or give --force)", a.agent, err)
	}
	j, err := n.Open(ctx, a.host().Enter)
	if err != nil {
		return err
	}
	left, err := j.Release(ctx)
	return errors.Join(err, a.writeReleased(agents[i].Entries, left), j.Close())
}

// writeReleased prints the number of entries, and those that are left.
func (a *app) writeReleased(recorded int, left []journal.Entry) error {
	if a.shown = true; a.output == formatJSON {
		return a.writeJSON(struct {
			Agent    string          `json:"agent"`
			Recorded int             `json:"recorded"`
			Left     []journal.Entry `json:"left"`
		}{a.agent, recorded, withoutContent(left)})
	}
	if recorded == 0 {
		fmt.Fprintf(a.stdout, "nothing is recorded in %s of agent %s\n", bootstrap.OneLine(a.stateDir), a.agent)
		return nil
	}
	fmt.Fprintf(a.stdout, "%s: agent %s is released; %d recorded, %d left in place\n", bootstrap.OneLine(a.stateDir), a.agent, recorded, len(left))
	a.writeEntries("left", left)
	return nil
}

// writeEntries says what has been done with entries.
func (a *app) writeEntries(done string, entries []journal.Entry) {
	for _, e := range entries {
		fmt.Fprintf(a.stdout, "%s %s, which step %s had changed\n", done, bootstrap.OneLine(e.String()), bootstrap.OneLine(e.Step))
	}
}

// needJournal opens the journal, without which there is nothing to show or undo.
func (a *app) needJournal(cmd *cobra.Command) error {
	if err := a.journalAsked(); err != nil {
		return err
	}
	return a.openJournal(cmd.Context())
}

// journalAsked returns an error if there can be no journal to ask, such as in a container
// that does not enter the host: its own would be empty.
func (a *app) journalAsked() error {
	if a.stateDir == "" {
		return usageError{errors.New("--state-dir is empty: there is no journal")}
	}
	if err := a.checkHost(); err != nil {
		return err
	}
	return a.host().CheckPlaces(map[string]string{a.stateDir: ""})
}

// journalView is the shown content of a journal.
type journalView struct {
	Agent      string          `json:"agent"`
	Owner      string          `json:"owner"`
	Generation int             `json:"generation"`
	Entries    []journal.Entry `json:"entries"`
	Found      []journal.Entry `json:"found,omitempty"`  // objects wanted as they were found
	Left       []journal.Left  `json:"left,omitempty"`   // for good
	Others     []agentView     `json:"others,omitempty"` // agents in the directory
	Error      string          `json:"error,omitempty"`  // why all fields but Others are unknown
}

// agentView is the shown description of another agent.
type agentView struct {
	Agent      string    `json:"agent"`
	Owner      string    `json:"owner"`
	Generation int       `json:"generation"`
	Since      time.Time `json:"since,omitzero"`
	Recorded   int       `json:"recorded"`
	Found      int       `json:"found,omitempty"` // wanted as it was found
	LastSeen   time.Time `json:"lastSeen,omitzero"`
	Alive      string    `json:"alive,omitempty"` // the evidence
	Error      string    `json:"error,omitempty"`
}

// showJournal shows the agent's journal and the other agents. One that is damaged hides
// none of the others.
func (a *app) showJournal(ctx context.Context) error {
	v := journalView{Agent: a.agent, Entries: []journal.Entry{}}
	unread := a.readJournal(ctx, &v)
	if unread != nil {
		v.Error = unread.Error()
	}
	var err error
	if v.Others, err = a.otherAgents(ctx); err != nil {
		return cmp.Or(unread, err)
	}
	if a.shown = true; a.output == formatJSON {
		return errors.Join(unread, a.writeJSON(v))
	}
	return errors.Join(unread, a.writeJournal(v))
}

func (a *app) readJournal(ctx context.Context, v *journalView) (err error) {
	if err := a.openJournal(ctx); err != nil {
		return err
	}
	if v.Owner, v.Generation, err = a.journal.Owner(); err != nil {
		return err
	}
	entries, err := a.journal.Entries()
	if err != nil {
		return err
	}
	v.Entries = withoutContent(entries)
	if v.Found, err = a.journal.Found(); err != nil {
		return err
	}
	v.Left, err = a.journal.LeftForGood()
	return err
}

func (a *app) otherAgents(ctx context.Context) (others []agentView, err error) {
	agents, err := a.node(ctx).Agents(ctx, a.host().Enter)
	for _, agent := range agents {
		if agent.Name == a.agent {
			continue
		}
		v := agentView{
			Agent: agent.Name, Owner: agent.Owner, Generation: agent.Generation, Since: agent.Since,
			Recorded: agent.Entries, Found: agent.Found, LastSeen: agent.Seen, Alive: agent.Alive,
		}
		if err := errors.Join(agent.Err, agent.AliveErr); err != nil {
			v.Error = err.Error()
		}
		others = append(others, v)
	}
	return others, err
}

// withoutContent returns the entries without the content of files, which may be secret.
func withoutContent(entries []journal.Entry) []journal.Entry {
	shown := make([]journal.Entry, len(entries))
	for i, e := range entries {
		e.Before.Content = nil
		if e.Over != nil {
			over := *e.Over
			over.Content = nil
			e.Over = &over
		}
		shown[i] = e
	}
	return shown
}

func (a *app) writeJSON(v any) error {
	e := json.NewEncoder(a.stdout)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func (a *app) writeJournal(v journalView) error {
	if v.Error == "" {
		a.writeWrapped(fmt.Sprintf("%s: owner: %s; %s", a.stateDir, ownerShown(v.Owner, v.Generation), recordedShown(len(v.Entries), len(v.Found))))
	}
	var rows []row
	for _, e := range slices.Concat(v.Entries, v.Found) {
		rows = append(rows, row{bootstrap.OneLine(e.Step), bootstrap.OneLine(e.Kind), strconv.Quote(e.Object), stateShown(e), age(e.Time)})
	}
	for _, l := range v.Left {
		rows = append(rows, row{"", bootstrap.OneLine(l.Kind), strconv.Quote(l.Object), "left for good", age(l.Time)})
	}
	if err := writeRows(a.stdout, rows); err != nil {
		return err
	}
	for _, o := range v.Others {
		line := fmt.Sprintf("agent %s: owner: %s; %s; last seen %s", o.Agent, ownerShown(o.Owner, o.Generation), recordedShown(o.Recorded, o.Found), age(o.LastSeen))
		switch {
		case o.Alive != "":
			line += "; alive: " + o.Alive
		case o.Error == "":
			line += "; nothing shows that it is alive"
		}
		if o.Error != "" {
			line += "; " + o.Error
		}
		a.writeWrapped(line)
	}
	return nil
}

// writeWrapped writes a text in lines that fit, all but the first behind blanks.
func (a *app) writeWrapped(text string) {
	fmt.Fprintln(a.stdout, strings.TrimSpace(wrapped(bootstrap.OneLine(text), "  ", columns)))
}

// row is a line of the table of entries.
type row struct{ step, kind, object, state, age string }

// writeRows writes a table that fits a terminal of 80 columns. An object that is too long for
// that is below its row.
func writeRows(w io.Writer, rows []row) error {
	var step, kind, object, state, age int // their widths
	for _, r := range rows {
		step, kind = max(step, utf8.RuneCountInString(r.step)), max(kind, utf8.RuneCountInString(r.kind))
		state, age = max(state, utf8.RuneCountInString(r.state)), max(age, utf8.RuneCountInString(r.age))
	}
	room := columns - step - kind - state - age - 4*len("  ")
	for _, r := range rows {
		if n := utf8.RuneCountInString(r.object); n <= room {
			object = max(object, n)
		}
	}
	for _, r := range rows {
		below := ""
		if utf8.RuneCountInString(r.object) > room {
			r.object, below = "", "\n    "+r.object
		}
		if _, err := fmt.Fprintf(w, "%-*s  %-*s  %-*s  %-*s  %s%s\n", step, r.step, kind, r.kind, object, r.object, state, r.state, r.age, below); err != nil {
			return err
		}
	}
	return nil
}

func ownerShown(owner string, generation int) string {
	if generation == 0 {
		return "none"
	}
	return fmt.Sprintf("%q, generation %d", owner, generation)
}

// recordedShown says how many objects an agent has changed, and how many it wants as found.
func recordedShown(changed, found int) string {
	if found == 0 {
		return fmt.Sprintf("%d recorded", changed)
	}
	return fmt.Sprintf("%d recorded, %d as found", changed, found)
}

// stateShown names the stage of an entry in a word.
func stateShown(e journal.Entry) string {
	switch {
	case e.Found:
		return "as found"
	case e.Kept:
		return "kept"
	case !e.Done:
		return "begun"
	case e.Adopted:
		return "adopted"
	}
	return "done"
}

// age formats the time since an event for people.
func age(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	past := time.Since(t)
	for _, unit := range []struct {
		name string
		time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}} {
		switch n := past / unit.Duration; {
		case n == 1:
			return "1 " + unit.name + " ago"
		case n > 1:
			return fmt.Sprintf("%d %ss ago", n, unit.name)
		}
	}
	if past < -time.Minute {
		return t.UTC().Format(time.RFC3339) + ", by a clock that is ahead"
	}
	return "just now"
}
