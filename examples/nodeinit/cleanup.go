// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/cleanup/ownershipfile"
	"github.com/slipway-dev/slipway/examples/ownership"
)

// foldLists is how many lines of one kind a list shows to people.
const foldLists = 20

func (a *app) cleanup(cmd *cobra.Command, _ []string) error {
	scope := a.cleanupScope(cmd)
	asked := a.netns || a.xfrm || len(a.eniTables) > 0
	if asked && scope != "all-state" {
		return usageError{errors.New("--netns, --xfrm and --eni-tables go with --all-state")}
	}
	if a.ownershipFile != "" && (asked || a.aws) {
		return usageError{errors.New("--ownership goes without --netns, --xfrm, --eni-tables and --aws-leftovers: the file describes everything that is owned")}
	}
	if _, err := a.cleanupOwnership(cmd.Context()); err != nil {
		return err
	}
	if a.aws {
		scope = "all-state"
	}
	scope, err := a.plannedScope(cmd, scope)
	if err != nil {
		return err
	}
	if scope == "" {
		_, ignored := a.scopeFrom(nil)
		fmt.Fprintln(a.stderr, strings.Join(append([]string{"nothing selected, so nothing is done: give --all-state or --bpf-state, or set CILIUM_ALL_STATE or CILIUM_BPF_STATE to true"}, ignored...), "; "))
		return a.showInventory(&cleanup.Inventory{})
	}
	if err := needsRoot(os.Geteuid(), cmd.Name()); err != nil {
		return err
	}
	if err := a.openBook(cmd.Context()); err != nil {
		return err
	}
	if a.ownershipFile == "" && !a.aws { // whose files name their own folders
		if err := a.search(cmd.Context(), func(text string) { a.notes = append(a.notes, text) }); err != nil {
			return err
		}
	}
	own, err := a.cleanupOwnership(cmd.Context())
	if err != nil {
		return err
	}
	c := cleanup.Leftovers{
		Ownership: own, Scope: scope, BPFRoots: a.bpfRoots(), Progress: a.removing(), StrandPods: a.whileAlive, Sandboxes: a.sandboxes,
	}
	if a.reviewed != nil && a.reviewed.Agent != own.Agent {
		return usageError{fmt.Errorf("--plan %s: it is for agent %q, and the flags select %q", a.planFrom, a.reviewed.Agent, own.Agent)}
	}
	_, places := c.OnHost()
	if err := a.host().CheckPlaces(places); err != nil {
		return err
	}
	return a.cleanUp(cmd, c)
}

// cleanupScope is the scope of the flags, if one is given, else of the environment.
func (a *app) cleanupScope(cmd *cobra.Command) string {
	switch f := cmd.Flags(); {
	case a.allState:
		return "all-state"
	case a.bpfState:
		return "bpf-state"
	case f.Changed("all-state"), f.Changed("bpf-state"), a.ownershipFile != "": // the environment speaks of Cilium
		return ""
	}
	return cleanup.CiliumScope(a.getenv, nil)
}

// cleanupOwnership is the ownership that the flags select, with their exceptions.
func (a *app) cleanupOwnership(ctx context.Context) (cleanup.Ownership, error) {
	own, err := a.ownershipAsked(ctx)
	if err != nil {
		return own, err
	}
	for _, text := range a.exceptions {
		kind, name, _ := strings.Cut(text, ":")
		own.Exceptions = append(own.Exceptions, cleanup.Exception{Kind: kind, Name: name})
	}
	if err := own.Validate(); err != nil {
		return own, usageError{err}
	}
	return own, nil
}

func (a *app) ownershipAsked(ctx context.Context) (cleanup.Ownership, error) {
	switch {
	case a.aws:
		return ownershipfile.Parse([]byte(ownership.AWSLeftovers))
	case a.ownershipFile != "":
		own, err := ownershipfile.ReadFile(ctx, a.ownershipFile)
		switch {
		case errors.Is(err, ownershipfile.ErrInvalid):
			return own, usageError{fmt.Errorf("--ownership %w", err)}
		case err != nil:
			return own, fmt.Errorf("--ownership: %w", err)
		}
		return own, nil
	}
	own, err := a.ownership()
	var tables []uint32
	for _, table := range a.eniTables {
		number, _ := strconv.ParseUint(table, 10, 32) // checked
		tables = append(tables, uint32(number))
	}
	if a.netns {
		own.NetNS = cleanup.CiliumOnRequest().NetNS
	}
	if a.xfrm {
		own.XFRM = cleanup.CiliumOnRequest().XFRM
	}
	eni := cleanup.CiliumENI(tables...)
	own.Rules, own.Routes = append(own.Rules, eni.Rules...), append(own.Routes, eni.Routes...)
	return own, err
}

// ownership is Cilium's ownership on a node with the places of the flags. Mounts of other
// places are not among it: those that this program made are in its record, and any other
// may be the node's own.
func (a *app) ownership() (cleanup.Ownership, error) {
	binDirs, confDirs := a.binDirs, a.confDirs
	if len(confDirs) == 0 { // no runtime was asked
		binDirs, confDirs = []string{folderOr(a.cniBinDir, usualBinDir)}, []string{folderOr(a.cniConfDir, usualConfDir)}
	}
	own := cleanup.Cilium()
	sysctlConfDir := cmp.Or(a.sysctlConfDir, defaultSysctlConfDir)
	own.Files = inEach(own.Files, defaultSysctlConfDir, []string{sysctlConfDir})
	own.SetAside = []string{filepath.Join(usualConfDir, "*"+a.cniBackupSuffix)}
	for _, path := range []string{filepath.Join(usualConfDir, a.cniConfName), filepath.Join(sysctlConfDir, a.sysctlConfFile)} {
		if !slices.Contains(own.Files, path) {
			own.Files = append(own.Files, path)
		}
	}
	if a.userManagedConf {
		own.SetAside = nil
		own.Files = slices.DeleteFunc(own.Files, func(path string) bool { return filepath.Dir(path) == usualConfDir })
	}
	own.Files = inEach(inEach(own.Files, usualConfDir, confDirs), usualBinDir, binDirs)
	own.SetAside = inEach(own.SetAside, usualConfDir, confDirs)
	for _, dir := range slices.Concat(confDirs, binDirs) {
		own.Exceptions = append(own.Exceptions, cleanup.Exception{Kind: "cni-folder", Name: filepath.Clean(dir)})
	}
	own.Exceptions = append(own.Exceptions, cleanup.Exception{Kind: "sysctl-folder", Name: filepath.Clean(sysctlConfDir)})
	return own, nil
}

// inEach returns the paths, each one of the directory in all of dirs instead.
func inEach(paths []string, dir string, dirs []string) (all []string) {
	for _, path := range paths {
		if filepath.Dir(path) != dir {
			all = append(all, path)
			continue
		}
		for _, other := range dirs {
			all = append(all, filepath.Join(other, filepath.Base(path)))
		}
	}
	return all
}

func (a *app) bpfRoots() []string {
	if a.bpfFallback != "" {
		return []string{a.bpfRoot, a.bpfFallback}
	}
	return []string{a.bpfRoot}
}

// enter calls f where the leftovers are.
func (a *app) enter(ctx context.Context, c cleanup.Leftovers, f func(context.Context) error) error {
	namespaces, _ := c.OnHost()
	return a.host().Do(ctx, namespaces, f)
}

// cleanUp shows the items that it found, asks, and removes exactly these: an item that has
// been replaced meanwhile is left.
func (a *app) cleanUp(cmd *cobra.Command, c cleanup.Leftovers) error {
	ctx := ledger.With(cmd.Context(), a.book) // recorded objects are kept
	var found *cleanup.Inventory
	findErr := a.enter(ctx, c, func(ctx context.Context) (err error) {
		found, err = c.Inventory(ctx)
		return errors.Join(err, a.addUnasked(ctx, c, found))
	})
	if found == nil {
		return findErr
	}
	found, missing := a.selected(found)
	if a.force && !a.dryRun && a.planFile == "" && len(found.Items) > 0 { // a list would look removed
		alive := func(ctx context.Context) error { return a.notAlive(ctx, c.Ownership) }
		if err := a.enter(ctx, c, alive); err != nil {
			return fmt.Errorf("nothing was removed: %w", err)
		}
	}
	if err := a.showInventory(found, missing...); err != nil {
		return err
	}
	if a.planFile != "" {
		return errors.Join(findErr, writePlan(ctx, a.planFile, c.Removals(found), findErr == nil))
	}
	if a.dryRun || len(found.Items) == 0 {
		return findErr
	}
	if !a.force {
		if err := confirm(cmd.InOrStdin(), a.stderr, len(found.Items)); err != nil {
			return err
		}
	}
	return errors.Join(findErr, a.remove(ctx, c, found.Items))
}

// addUnasked adds to what is left the items that further flags would add to Cilium's state.
// Namespaces of pods are not among them.
func (a *app) addUnasked(ctx context.Context, c cleanup.Leftovers, found *cleanup.Inventory) error {
	if c.Scope != "all-state" || a.ownershipFile != "" || a.aws {
		return nil
	}
	tables, err := cleanup.CiliumENITables(ctx)
	tables = slices.DeleteFunc(tables, func(table uint32) bool { return slices.Contains(a.eniTables, fmt.Sprint(table)) })
	c.Ownership = cleanup.CiliumENI(tables...)
	c.Ownership.NetNS, c.Ownership.XFRM = []string{"cilium-*"}, cleanup.CiliumOnRequest().XFRM
	unasked, findErr := c.Inventory(ctx)
	flags := map[string]string{"network namespace": "--netns", "xfrm policy": "--xfrm", "xfrm state": "--xfrm"}
	eni := "--eni-tables " + strings.Trim(strings.ReplaceAll(fmt.Sprint(tables), " ", ","), "[]")
	var left []cleanup.Item
	asked := map[string]bool{}
	for _, item := range found.Items {
		asked[item.String()] = true
	}
	for _, item := range unasked.Items {
		if !asked[item.String()] {
			left = append(left, cleanup.Item{Kind: item.Kind, Object: item.Object, Detail: "not asked for: " + cmp.Or(flags[item.Kind], eni) + " removes it"})
		}
	}
	found.Left = append(left, found.Left...)
	return errors.Join(err, findErr)
}

// remove removes the items under the node's lock, unless their agent is alive.
func (a *app) remove(ctx context.Context, c cleanup.Leftovers, items []cleanup.Item) error {
	return a.locked(ctx, func() error {
		return a.enter(ctx, c, func(ctx context.Context) error {
			if err := a.notAlive(ctx, c.Ownership); err != nil {
				return err
			}
			c.WhileAlive = true // that has just been looked at
			if err := c.Remove(ctx, items); err != nil {
				return err
			}
			return a.verifyGone(ctx, c)
		})
	})
}

// notAlive returns an error if the agent whose state is to be removed is alive, or if it
// cannot tell. The node's owner is Cilium's pod, and no other agent's.
func (a *app) notAlive(ctx context.Context, own cleanup.Ownership) error {
	if a.whileAlive {
		return nil
	}
	owned := a.book
	if a.ownershipFile != "" || a.aws {
		owned = nil
	}
	return own.AgentAlive(ctx, owned)
}

// verifyGone looks once more: new items may have appeared during the removal.
func (a *app) verifyGone(ctx context.Context, c cleanup.Leftovers) error {
	left, err := c.Inventory(ctx)
	left, _ = a.selected(left)
	if err != nil || len(left.Items) == 0 {
		return err
	}
	return fmt.Errorf("removed everything shown, but there is more now: %s and %d more (a program still creates it: stop the agent, and run this again)",
		left.Items[0], len(left.Items)-1)
}

// showInventory shows the items found, and those of a plan that were not.
func (a *app) showInventory(found *cleanup.Inventory, missing ...string) error {
	a.shown = true
	if a.output == formatJSON {
		return a.writeFound(found, missing)
	}
	if err := found.WriteText(a.stdout, foldLists); err != nil {
		return err
	}
	for _, note := range a.notes {
		note = "note: " + bootstrap.OneLine(note)
		if a.width > 0 {
			note = strings.TrimSpace(wrapped(note, "  ", columns))
		}
		fmt.Fprintln(a.stdout, note)
	}
	if len(missing) == 0 {
		return nil
	}
	fmt.Fprintf(a.stdout, "in the plan, and not here (%d)\n", len(missing))
	for i, m := range missing {
		if i == foldLists-1 && len(missing) > foldLists {
			fmt.Fprintf(a.stdout, "  ... and %d more\n", len(missing)-i)
			break
		}
		fmt.Fprintf(a.stdout, "  %s\n", bootstrap.OneLine(m))
	}
	return nil
}

// removing shows progress: a line every so often. Failures are reported at the end.
func (a *app) removing() func(done, total int, item string, err error) {
	const every = 500
	failed := 0
	return func(done, total int, _ string, err error) {
		if err != nil {
			failed++
		}
		if a.output != formatText || done != total && done%every != 0 {
			return
		}
		line := fmt.Sprintf("removed %d of %d", done-failed, total)
		if failed > 0 {
			line += fmt.Sprintf(", %d failed", failed)
		}
		fmt.Fprintln(a.stdout, line)
	}
}

func confirm(in io.Reader, out io.Writer, items int) error {
	if f, ok := in.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return errors.New("not removed: cannot ask for confirmation here, so give -f")
	}
	fmt.Fprintf(out, "Remove these %d? [y/N] ", items)
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !strings.EqualFold(strings.TrimSpace(answer), "y") {
		return errors.New("not removed: not confirmed")
	}
	return nil
}
