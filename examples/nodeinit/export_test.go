// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Commands returns the whole program, for tests of each command.
func Commands() *cobra.Command {
	root := (&app{}).program()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	return root
}

// Row is what a test needs to know of a flag of a command.
type Row struct {
	Place                          int // in the table
	Group, Name, Type, Usage, Help string
	Variables, Choices             []string
	Shown                          bool
}

// Flags returns the rows of a command in the table.
func Flags(c *cobra.Command) (rows []Row) {
	a, place := &app{}, -1
	a.groups = a.table()
	own := a.flagsOf(c.Name())
	for _, g := range a.groups {
		for _, f := range g.flags {
			if place++; slices.Contains(own, f) {
				var b strings.Builder
				f.writeHelp(&b)
				usage, help, _ := strings.Cut(strings.TrimSpace(b.String()), "\n")
				help, _, _ = strings.Cut(strings.Join(strings.Fields(help), " "), " [$")
				rows = append(rows, Row{place, g.title, f.name, f.Type(), "`" + usage + "`", help, f.variables(), f.choices, f.shows(c)})
			}
		}
	}
	return rows
}

// Rows is how many rows the table has.
func Rows() int {
	a := &app{}
	a.groups = a.table()
	return len(a.rows())
}

// Value returns the value that a flag of a command has from a variable of the environment.
func Value(command, name, variable, value string) string {
	a := &app{name: command, getenv: func(name string) (string, bool) { return map[string]string{variable: value}[name], name == variable }}
	a.groups = a.table()
	a.setDefaults()
	_ = a.complete(context.Background()) // other flags may be missing
	for _, f := range a.flagsOf(command) {
		if f.name == name {
			return f.String()
		}
	}
	return ""
}
