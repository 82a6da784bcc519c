// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
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
