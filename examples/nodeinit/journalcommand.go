// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/journal"
)

func (a *app) journalCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "journal", Args: arguments(0),
		Short: "Show who owns the node and what is recorded for uninstall",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.needJournal(cmd); err != nil {
				return err
			}
			return a.showJournal()
		},
	}
	a.outputFlag(c.PersistentFlags())
	a.stateFlags(c.PersistentFlags())
	c.AddCommand(a.journalForgetCommand())
	return c
}

func (a *app) journalForgetCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "forget OBJECT", Args: cobra.ExactArgs(1),
		Short: "Drop the entry of an object that cannot be undone, without undoing it",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := needsRoot(os.Geteuid(), "journal forget"); err != nil {
				return err
			}
			if err := a.needJournal(cmd); err != nil {
				return err
			}
			if err := a.mayUndo(cmd); err != nil {
				return err
			}
			unlock, err := a.lock(cmd.Context())
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, unlock()) }()
			dropped, err := a.journal.ForgetObject(cmd.Context(), args[0])
			for _, e := range dropped {
				fmt.Fprintf(a.stdout, "forgot %s, which step %s had changed\n", bootstrap.OneLine(e.String()), bootstrap.OneLine(e.Step))
			}
			return err
		},
	}
	a.undoFlags(c)
	return c
}

// needJournal opens the journal, without which there is nothing to show or undo.
func (a *app) needJournal(cmd *cobra.Command) error {
	if a.stateDir == "" {
		return usageError{errors.New("--state-dir is empty: there is no journal")}
	}
	if err := a.checkHost(); err != nil {
		return err
	}
	return a.openJournal(cmd.Context())
}

// journalView is what is shown of a journal.
type journalView struct {
	Owner      string          `json:"owner"`
	Generation int             `json:"generation"`
	Entries    []journal.Entry `json:"entries"`
	Left       []journal.Left  `json:"left,omitempty"` // for good
}

func (a *app) showJournal() (err error) {
	v := journalView{}
	if v.Owner, v.Generation, err = a.journal.Owner(); err != nil {
		return err
	}
	if v.Entries, err = a.journal.Entries(); err != nil {
		return err
	}
	if v.Left, err = a.journal.LeftForGood(); err != nil {
		return err
	}
	for i := range v.Entries {
		v.Entries[i].Before.Content = nil // it may be anything, and secret
	}
	a.shown = true
	if a.output == formatJSON {
		e := json.NewEncoder(a.stdout)
		e.SetIndent("", "  ")
		return e.Encode(v)
	}
	return a.writeJournal(v)
}

func (a *app) writeJournal(v journalView) error {
	owner := "nobody in particular"
	if v.Generation > 0 {
		owner = fmt.Sprintf("%q, generation %d", v.Owner, v.Generation)
	}
	fmt.Fprintf(a.stdout, "%s: owner: %s; %d recorded\n", bootstrap.OneLine(a.stateDir), owner, len(v.Entries))
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, e := range v.Entries {
		state := "done"
		switch {
		case e.Kept:
			state = "kept"
		case !e.Done:
			state = "begun"
		}
		fmt.Fprintf(w, "%s\t%s\t%q\t%s\t%s\n", bootstrap.OneLine(e.Step), bootstrap.OneLine(e.Kind), e.Object, state, elapsed(time.Since(e.Time).Round(time.Second)))
	}
	for _, l := range v.Left {
		fmt.Fprintf(w, "\t%s\t%q\tleft for good\t%s\n", bootstrap.OneLine(l.Kind), l.Object, elapsed(time.Since(l.Time).Round(time.Second)))
	}
	return w.Flush()
}
