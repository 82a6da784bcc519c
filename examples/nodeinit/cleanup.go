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
		return usage("--netns, --xfrm and --eni-tables go with --all-state")
	}
	if a.ownershipFile != "" && (asked || a.aws) {
		return usage("--ownership goes without --netns, --xfrm, --eni-tables and --aws-leftovers: the file describes everything that is owned")
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
		return a.nothingSelected(cmd.Context())
	}
	c, err := a.leftovers(cmd.Context(), scope)
	if err != nil {
		return err
	}
	if a.reviewed != nil && a.reviewed.Agent != c.Ownership.Agent {
		return usage("--plan %s: it is for agent %q, and the flags select %q", a.planFrom, a.reviewed.Agent, c.Ownership.Agent)
	}
	return a.cleanUp(cmd, c)
}

// leftovers is what is looked for on this node.
func (a *app) leftovers(ctx context.Context, scope string) (c cleanup.Leftovers, err error) {
	if err := needsRoot(os.Geteuid(), a.name); err != nil {
		return c, err
	}
	if err := a.openBook(ctx); err != nil {
		return c, err
	}
	if a.ownershipFile == "" && !a.aws { // whose files name their own directories
		if err := a.search(ctx); err != nil {
			return c, err
		}
	}
	own, err := a.cleanupOwnership(ctx)
	if err != nil {
		return c, err
	}
	c = cleanup.Leftovers{
		Ownership: own, Scope: scope, BPFRoots: a.bpfRoots(), Progress: a.removing(), StrandPods: a.whileAlive, Sandboxes: a.sandboxes,
	}
	_, places := c.OnHost()
	return c, a.host().CheckPlaces(places)
}

// nothingSelected says what to select and, to a person, what each selection would remove. It
// is no error: Cilium's container is in every pod.
func (a *app) nothingSelected(ctx context.Context) error {
	_, ignored := a.scopeFrom(nil)
	fmt.Fprintln(a.stderr, strings.Join(append([]string{"nothing is selected, so nothing is removed: give --all-state or --bpf-state, or set CILIUM_ALL_STATE or CILIUM_BPF_STATE to true"}, ignored...), "; "))
	switch {
	case a.output == formatJSON:
		return a.showInventory(&cleanup.Inventory{})
	case a.width == 0:
		return nil
	}
	c, err := a.leftovers(ctx, "")
	if err != nil {
		return err
	}
	for _, c.Scope = range []string{"bpf-state", "all-state"} {
		found, err := a.inventory(ctx, c)
		if err != nil {
			return err
		}
		if n := len(found.Items); n == 0 {
			fmt.Fprintf(a.stdout, "--%s would remove nothing\n", c.Scope)
		} else {
			fmt.Fprintf(a.stdout, "--%s would remove %d objects; --dry-run lists them\n", c.Scope, n)
		}
	}
	return nil
}

// inventory lists what is left on the node; recorded objects are uninstall's.
func (a *app) inventory(ctx context.Context, c cleanup.Leftovers) (found *cleanup.Inventory, err error) {
	err = a.enter(ledger.With(ctx, a.book), c, func(ctx context.Context) (err error) {
		found, err = c.Inventory(ctx)
		return errors.Join(err, a.addUnasked(ctx, c, found))
	})
	return found, err
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
			return own, usage("--ownership %w", err)
		case err != nil:
			return own, fmt.Errorf("--ownership: %w", err)
		}
		return own, nil
	}
	own := a.ownership()
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
	return own, nil
}

// ownership is Cilium's ownership on a node with the places of the flags. Mounts of other
// places are not among it: those that this program made are in its record, and any other
// may be the node's own.
func (a *app) ownership() cleanup.Ownership {
	binDirs, confDirs := a.binDirs, a.confDirs
	if len(confDirs) == 0 { // no runtime was asked
		binDirs, confDirs = []string{dirOr(a.cniBinDir, usualBinDir)}, []string{dirOr(a.cniConfDir, usualConfDir)}
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
		own.Exceptions = append(own.Exceptions, cleanup.Exception{Kind: "cni-directory", Name: filepath.Clean(dir)})
	}
	own.Exceptions = append(own.Exceptions, cleanup.Exception{Kind: "sysctl-directory", Name: filepath.Clean(sysctlConfDir)})
	return own
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
	found, findErr := a.inventory(ctx, c)
	if found == nil {
		return findErr
	}
	found = a.selected(found)
	if err := a.showInventory(found); err != nil {
		return err
	}
	if a.planFile != "" {
		return errors.Join(findErr, writePlan(ctx, a.planFile, c.Removals(found), findErr == nil))
	}
	if a.dryRun || len(found.Items) == 0 {
		return findErr
	}
	if a.quiet && !a.force {
		return errors.New("not removed: with --quiet there is no list to confirm, so give -f")
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
				return fmt.Errorf("nothing was removed: %w", err)
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
	left = a.selected(left)
	if err != nil || len(left.Items) == 0 {
		return err
	}
	return fmt.Errorf("removed everything shown, but there is more now: %s and %d more (a program still creates it: stop the agent, and run this again)",
		left.Items[0], len(left.Items)-1)
}

func (a *app) showInventory(found *cleanup.Inventory) error {
	if a.shown = true; a.output == formatJSON {
		return a.writeJSON(found)
	}
	return found.WriteText(a.stdout, foldLists)
}

// removing shows progress: a line every so often. Failures are reported at the end.
func (a *app) removing() func(done, total int, item string, err error) {
	failed := 0
	return func(done, total int, _ string, err error) {
		if err != nil {
			failed++
		}
		if a.output == formatText && (done == total || done%500 == 0) {
			fmt.Fprintf(a.stdout, "removed %d of %d\n", done-failed, total)
		}
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
