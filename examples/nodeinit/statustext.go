// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// text is the status for people, on a terminal of 80 columns. Only a word that does not fit,
// such as a path, makes a line longer.
func (v nodeStatus) text() string {
	var b strings.Builder
	head := bootstrap.OneLine(v.StateDir) + ": " + v.State
	if len(v.Agents)+len(v.Records)+len(v.Damaged) == 0 && v.Error == "" {
		head += "; nothing is recorded"
	}
	fmt.Fprintln(&b, head)
	field(&b, "error", v.Error)
	for _, m := range v.Orphans {
		field(&b, "orphan", orphanShown(m))
	}
	for _, agent := range v.Agents {
		agent.write(&b)
	}
	if len(v.Records) > 0 {
		fmt.Fprintln(&b, "recorded:")
	}
	for _, r := range v.Records {
		listed(&b, recordShown(r))
	}
	for _, id := range v.Damaged {
		listed(&b, id+" has a damaged record: nodeinit forget OBJECT drops it, and the object stays as it is")
	}
	for _, id := range v.Left {
		listed(&b, id+" is left for good")
	}
	return b.String()
}

// recordShown is a record in a line.
func recordShown(r ledger.Record) string {
	var wants []string
	for _, c := range r.Claims {
		wants = append(wants, c.Agent+"/"+c.Step)
	}
	wants = append(wants, r.Causes...)
	where := ""
	if r.Namespace != "" {
		where = " in a container"
	}
	line := fmt.Sprintf("%s %s%s was %s, is %s; for %s", r.Kind, r.Object, where, stateShown(r.Original), stateShown(r.Left), strings.Join(wants, ", "))
	if r.Begun {
		line += "; begun by a run that was cut short"
	}
	if r.Kept != "" {
		line += "; kept: " + r.Kept
	}
	return line
}

// stateShown describes a state in a few words. The value of a mount is for programs.
func stateShown(s ledger.State) string {
	switch s.Type {
	case "":
		return "none"
	case "value", "symlink":
		return s.Value
	}
	shown := s.Type
	if s.SHA256 != "" {
		shown += fmt.Sprintf(" of %d bytes", s.Size)
	}
	if s.Mode != 0 {
		shown += fmt.Sprintf(" %04o", s.Mode)
	}
	return shown
}

// orphanShown says what removes an object that is not recorded.
func orphanShown(m ledger.Marked) string {
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
	fmt.Fprintf(b, "agent %s: %s\n", bootstrap.OneLine(v.Name), v.State)
	field(b, "error", v.Error)
	if v.LastRun != nil {
		v.LastRun.write(b)
	} else {
		field(b, "last run", "not known")
	}
	owner := "none"
	if v.Generation > 0 {
		owner = fmt.Sprintf("%q, generation %d, since %s", v.Owner, v.Generation, age(v.Since))
	}
	switch {
	case v.Generation == 0:
	case v.Alive != "":
		owner += "; alive: " + v.Alive
	case v.AliveErr != nil:
		owner += "; whether it is alive is not known: " + v.AliveErr.Error()
	default:
		owner += "; nothing shows that it is alive"
	}
	field(b, "owner", owner+"; last seen "+age(v.Seen))
	recorded := fmt.Sprintf("%d changed", v.Changed)
	for _, count := range []struct {
		n    int
		what string
	}{{v.Found, "as found"}, {v.Adopted, "adopted"}, {v.Begun, "begun"}, {v.Kept, "kept"}, {v.Ended, "gone with a reboot"}} {
		if count.n > 0 {
			recorded += fmt.Sprintf(", %d %s", count.n, count.what)
		}
	}
	field(b, "recorded", recorded)
	for _, todo := range v.Todo {
		field(b, "to do", todo)
	}
}

func (r *runStatus) write(b *strings.Builder) {
	by := ""
	if r.Version != "" {
		by = ", by version " + r.Version
	}
	if r.Owner != "" {
		by += fmt.Sprintf(", for owner %q", r.Owner)
	}
	field(b, "last run", fmt.Sprintf("%s %s, %s%s; %s", r.Command, r.Result, age(r.Time), by, r.Summary))
	if r.Result != stateFailed {
		return
	}
	failed := r.Code
	if r.Step != "" {
		failed = "step " + r.Step + ": " + r.Code
	}
	field(b, "failed", failed)
	field(b, "because", r.Error)
	field(b, "remedy", r.Remedy)
}

// age formats the time since an event for people.
func age(t time.Time) string {
	past := time.Since(t)
	for _, unit := range []struct {
		name string
		time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}} {
		switch n := past / unit.Duration; {
		case t.IsZero():
			return "never"
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

const (
	columns = 80
	labels  = 12 // columns before a field's text
)

// field writes a label and a text, if there is one, wrapped at blanks.
func field(b *strings.Builder, label, text string) {
	if text == "" {
		return
	}
	lines := strings.TrimLeft(wrapped(bootstrap.OneLine(text), strings.Repeat(" ", labels), columns), " ")
	b.WriteString(strings.TrimRight(fmt.Sprintf("  %-*s%s", labels-2, label, lines), " ") + "\n")
}

// listed writes an item of a list, wrapped at blanks.
func listed(b *strings.Builder, text string) {
	fmt.Fprintln(b, "  "+strings.TrimSpace(wrapped(bootstrap.OneLine(text), "    ", columns)))
}
