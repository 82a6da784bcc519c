// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/cniinstall"
)

func (a *app) installCNICommand() *cobra.Command {
	c := &cobra.Command{
		Use: "install-cni", Args: arguments(0),
		Short: "Install CNI plugins, and the network configuration after them",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needsRoot(os.Geteuid(), cmd.Name()); err != nil {
				return err
			}
			return a.cniPlan(cmd, func(p *bootstrap.Plan) error { return a.show(cmd.Context(), p, (*bootstrap.Plan).Apply) })
		},
	}
	a.cniFlags(c.Flags())
	a.singleFlags(c)
	return c
}

func (a *app) uninstallCNICommand() *cobra.Command {
	var dryRun bool
	c := &cobra.Command{
		Use: "uninstall-cni", Args: arguments(0),
		Short: "Take back what install-cni or apply installed, configuration first",
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.plugins, a.cniConf = "", "" // what is to be undone, the record says
			return a.cniPlan(cmd, func(p *bootstrap.Plan) error { return a.takeBack(cmd, p, dryRun) })
		},
	}
	a.cniFlags(c.Flags())
	a.singleFlags(c)
	c.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be undone, and change nothing")
	return c
}

// cniPlan builds the plan of the one step and runs it.
func (a *app) cniPlan(cmd *cobra.Command, run func(*bootstrap.Plan) error) error {
	install, closeAll, err := a.install()
	if err != nil {
		return err
	}
	defer closeAll()
	return run(&bootstrap.Plan{Lock: a.lock(), Steps: []bootstrap.Step{
		{Name: stepCNI, Action: a.onHost(hostns.Mount, install)},
	}})
}

// install says what goes into the CNI folders. Its sources are on this side,
// so they are opened here, before anything runs in the host's namespaces.
func (a *app) install() (i cniinstall.Install, closeAll func() error, err error) {
	i = cniinstall.Install{
		BinDir: a.cniBinDir, ConfDir: a.cniConfDir, ConfName: a.cniConfName,
		StateDir: a.stateDir, Owner: a.owner,
		Warn: a.warnOnce(),
	}
	closeAll = func() error { return nil }
	if a.cniConf != "" && !a.userManagedConf && a.writeWhenReady == "" {
		content, err := os.ReadFile(a.cniConf)
		if err != nil {
			return i, closeAll, fmt.Errorf("--cni-conf: %w", err)
		}
		i.Config = cniinstall.Whole(content)
	}
	if a.plugins == "" {
		return i, closeAll, nil
	}
	root, err := os.OpenRoot(a.plugins)
	if err != nil {
		return i, closeAll, fmt.Errorf("--plugins: %w", err)
	}
	i.Plugins, closeAll = root.FS(), root.Close
	if i.Policy, err = a.policyFor(root); err != nil {
		return i, closeAll, errors.Join(err, root.Close())
	}
	return i, closeAll, nil
}

// policyFor says for each plugin in the folder when it is installed.
func (a *app) policyFor(root *os.Root) (map[string]cniinstall.Policy, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, fmt.Errorf("--plugins: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("--plugins: %w", err)
	}
	policy := map[string]cniinstall.Policy{}
	for _, name := range names {
		switch {
		case name == "loopback" && a.overwriteLoopback:
			policy[name] = cniinstall.Always
		case name == "loopback" || !a.overwritePlugins:
			policy[name] = cniinstall.IfMissing
		}
	}
	return policy, nil
}

// warnOnce logs each text once: a plan looks at the node several times.
func (a *app) warnOnce() func(string) {
	log, said := a.logger(), map[string]bool{}
	return func(text string) {
		if !said[text] {
			log.Warn(text, "step", stepCNI)
		}
		said[text] = true
	}
}
