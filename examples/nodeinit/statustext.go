// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap"
)

// writeStatus writes the status for people, on a terminal of 80 columns. Only a word that
// does not fit, such as a path, makes a line longer.
func (a *app) writeStatus(v nodeStatus) error {
	var b strings.Builder
	head := bootstrap.OneLine(v.StateDir) + ": " + v.State
	if len(v.Agents) == 0 && v.Error == "" {
		head += "; nothing is recorded"
	}
	fmt.Fprintln(&b, head)
	if v.Error != "" {
		field(&b, "error", v.Error)
	}
	for _, o := range v.Orphans {
		what := o.Kind + " " + o.Object
		if o.Agent != "" {
			what += " of agent " + o.Agent
		}
		if v.damaged(o.Agent) {
			what += ", whose journal is unreadable: its undo is lost unless that is repaired; remove it: "
		} else {
			what += ", not in any journal here: uninstall it with the --state-dir that it was made with, or if that is lost, remove it: "
		}
		field(&b, "orphan", what+o.Remove)
	}
	for _, agent := range v.Agents {
		agent.write(&b)
	}
	_, err := io.WriteString(a.stdout, b.String())
	return err
}

func (v agentStatus) write(b *strings.Builder) {
	fmt.Fprintf(b, "agent %s: %s\n", bootstrap.OneLine(v.Agent), v.State)
	if v.Error != "" {
		field(b, "error", v.Error)
	}
	if v.LastRun != nil {
		v.LastRun.write(b)
	} else {
		field(b, "last run", "not known")
	}
	owner := ownerShown(v.Owner, v.Generation)
	if !v.Since.IsZero() {
		owner += ", since " + age(v.Since)
	}
	if v.Alive != "" {
		owner += "; alive: " + v.Alive
	}
	field(b, "owner", owner)
	recorded := recordedShown(v.Recorded, v.Found)
	if v.Adopted > 0 {
		recorded += fmt.Sprintf(", %d adopted", v.Adopted)
	}
	if v.Ended > 0 {
		recorded += fmt.Sprintf(", %d gone with a reboot", v.Ended)
	}
	field(b, "journal", recorded)
	writeObjects(b, "begun", v.Begun)
	writeObjects(b, "kept", v.Kept)
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
	if r.Error != "" {
		field(b, "", r.Error)
	}
	if r.Remedy != "" {
		field(b, "remedy", r.Remedy)
	}
}

// writeObjects writes a line for each of a list, which is folded.
func writeObjects(b *strings.Builder, label string, objects []objectStatus) {
	for i, o := range objects {
		if i == foldLists-1 && len(objects) > foldLists {
			field(b, "", fmt.Sprintf("... and %d more", len(objects)-i))
			return
		}
		field(b, label, fmt.Sprintf("%s %s, of step %s, %s", o.Kind, o.Object, o.Step, age(o.Time)))
		label = ""
	}
}

const (
	columns = 80
	labels  = 12 // columns before a field's text
)

// field writes a label and a text, wrapped at blanks.
func field(b *strings.Builder, label, text string) {
	lines := strings.TrimLeft(wrapped(bootstrap.OneLine(text), strings.Repeat(" ", labels), columns), " ")
	b.WriteString(strings.TrimRight(fmt.Sprintf("  %-*s%s", labels-2, label, lines), " ") + "\n")
}
