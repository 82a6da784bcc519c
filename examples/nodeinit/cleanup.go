// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/slipway-dev/slipway/cleanup"
)

// foldLists is how many lines of one kind a list shows to people.
const foldLists = 20

func (a *app) cleanupCommand() *cobra.Command {
	var allState, bpfState, netns, xfrm, aws, force, dryRun bool
	c := &cobra.Command{
		Use: "cleanup", Aliases: []string{"post-uninstall-cleanup"}, Args: arguments(0),
		Short: "Show what an agent left on the node, and remove it",
		RunE: func(cmd *cobra.Command, _ []string) error {
			scope := cleanup.ScopeFromEnv(a.getenv)
			switch {
			case allState:
				scope = cleanup.AllState
			case bpfState:
				scope = cleanup.BPFState
			}
			own := a.ownership()
			if netns {
				own.NetNS = cleanup.CiliumOnRequest().NetNS
			}
			if xfrm {
				own.XFRM = cleanup.CiliumOnRequest().XFRM
			}
			if aws {
				own, scope = cleanup.AWSLeftovers(), cleanup.AllState
			}
			if scope == 0 {
				fmt.Fprintln(a.stderr, "nothing selected, so nothing is done: give --all-state or --bpf-state, or set CILIUM_ALL_STATE or CILIUM_BPF_STATE to true")
				return nil
			}
			if err := needsRoot(os.Geteuid(), "cleanup"); err != nil {
				return err
			}
			return a.cleanUp(cmd, cleanup.Cleanup{
				Ownership: own, Scope: scope, BPFRoots: []string{a.bpfRoot}, StateDir: a.stateDir, Progress: a.removed,
			}, dryRun, force)
		},
	}
	f := c.Flags()
	f.BoolVar(&allState, "all-state", false, "everything that is the agent's")
	f.BoolVar(&bpfState, "bpf-state", false, "BPF programs, pins and maps only")
	f.BoolVar(&netns, "netns", false, "with --all-state: also network namespaces named cilium-* and cni-*, of which the latter may be another runtime's")
	f.BoolVar(&xfrm, "xfrm", false, "with --all-state: also IPsec policies and states with the agent's marks")
	f.BoolVar(&aws, "aws-leftovers", false, "instead of the agent's state: chains of the AWS VPC CNI, which is no more on this node")
	f.BoolVarP(&force, "force", "f", false, "do not ask")
	f.BoolVar(&dryRun, "dry-run", false, "only show what there is")
	a.bpfFlags(f)
	a.cgroupFlags(f)
	a.sysctlFlags(f)
	a.cniFlags(f)
	a.outputFlag(f)
	a.stateFlags(f)
	return c
}

// ownership is what Cilium owns on a node with the places that the flags say.
func (a *app) ownership() cleanup.Ownership {
	own := cleanup.Cilium().
		Moved("/etc/cni/net.d", a.cniConfDir).
		Moved("/opt/cni/bin", a.cniBinDir).
		Moved("/etc/sysctl.d", a.sysctlConfDir).
		Moved("/run/cilium/cgroupv2", a.cgroupRoot)
	own.Files = append(own.Files, filepath.Join(a.cniConfDir, a.cniConfName), filepath.Join(a.sysctlConfDir, a.sysctlConfFile))
	if a.bpfRoot != cleanup.DefaultBPFRoot { // that one is the node's
		own.Mounts = append(own.Mounts, cleanup.MountRule{Path: a.bpfRoot, Type: "bpf"})
	}
	return own
}

// cleanUp shows what it found, asks, and removes exactly that.
func (a *app) cleanUp(cmd *cobra.Command, c cleanup.Cleanup, dryRun, force bool) (err error) {
	ctx := cmd.Context()
	if err := a.checkHost(); err != nil {
		return err
	}
	if lock := a.plainLock(); lock != nil && !dryRun {
		unlock, lockErr := lock(ctx)
		if lockErr != nil {
			return lockErr
		}
		defer func() { err = errors.Join(err, unlock()) }()
	}
	var found *cleanup.Inventory
	findErr := a.hostDo(ctx, cleanupNamespaces, func(ctx context.Context) (err error) {
		found, err = c.Inventory(ctx)
		return err
	})
	if found == nil {
		return findErr
	}
	if err := a.showInventory(found); err != nil {
		return err
	}
	if dryRun || len(found.Items) == 0 {
		return findErr
	}
	if !force {
		if err := confirm(cmd.InOrStdin(), a.stderr, len(found.Items)); err != nil {
			return err
		}
	}
	return errors.Join(findErr, a.hostDo(ctx, cleanupNamespaces, func(ctx context.Context) error {
		return c.Remove(ctx, found.Items)
	}))
}

func (a *app) showInventory(found *cleanup.Inventory) error {
	a.shown = true
	if a.output == formatJSON {
		e := json.NewEncoder(a.stdout)
		e.SetIndent("", "  ")
		return e.Encode(found)
	}
	return found.WriteText(a.stdout, foldLists)
}

// removed shows progress: a line every so often, and each failure.
func (a *app) removed(done, total int, item string, err error) {
	const every = 500
	if err == nil && a.output == formatText && (done == total || done%every == 0) {
		fmt.Fprintf(a.stdout, "removed %d of %d\n", done, total)
	}
}

func confirm(in io.Reader, out io.Writer, items int) error {
	if f, ok := in.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return errors.New("not removed: nobody can be asked here, so give -f")
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
