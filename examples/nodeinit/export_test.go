// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import "github.com/spf13/cobra"

// Commands is the whole program, for tests that look at each command and flag.
func Commands() *cobra.Command {
	root := (&app{}).command()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	return root
}
