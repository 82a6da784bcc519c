// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// Commands returns the whole program, for tests of each command and flag.
func Commands() *cobra.Command {
	root := (&app{}).command()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	return root
}

// TwoExamples returns the examples in a command's help.
func TwoExamples(c *cobra.Command) string {
	return "  " + strings.ReplaceAll(examples[c.CommandPath()], "\n", "\n  ")
}

// Placed reports whether a flag has a section of help.
func Placed(flag string) bool { return order(flag) >= 0 }

// JournalRows is the table of entries that journal shows.
func JournalRows(rows ...[5]string) string {
	var all []row
	for _, r := range rows {
		all = append(all, row{r[0], r[1], strconv.Quote(r[2]), r[3], r[4]})
	}
	var b strings.Builder
	must(writeRows(&b, all))
	return b.String()
}
