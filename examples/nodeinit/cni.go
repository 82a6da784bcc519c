// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/gate"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/bootstrap/reconcile"
	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/configresolve"
)

const nothingToInstall = "nothing to install: give --plugins, or a configuration by --cni-conf, --cni-conf-key, --cni-chain or --cni-template"

// guard keeps what the plan has applied, until it is asked to end or nothing is left to guard.
func (a *app) guard(cmd *cobra.Command, _ []string) error {
	ctx := cmd.Context()
	a.cniWait, a.waitLoaded = 0, 0
	if err := needsRoot(os.Geteuid(), cmd.Name()); err != nil {
		return err
	}
	p, err := a.resolvedPlan(ctx)
	if err != nil {
		return err
	}
	if err := a.needBook(ctx); err != nil {
		return err
	}
	p.Steps[0].Wants = p.Steps[0].Wants.(installing).Install // without Certain: what others have to bring may come
	p.Ledger.RepairOnly = true                               // it claims nothing
	log, said := a.logger(), ""
	err = reconcile.Loop{Plan: p, Done: func(report *bootstrap.Report, err error) {
		for _, result := range report.Results {
			for _, change := range result.Changes {
				fmt.Fprintln(a.stdout, bootstrap.OneLine(change))
			}
		}
		text := fmt.Sprint(err)
		if err != nil && text != said {
			log.Warn(text, "step", stepCNI)
		}
		said = text
	}}.Run(ctx)
	if err == nil && ctx.Err() == nil {
		fmt.Fprintln(a.stdout, "the installation was undone, or is another owner's: nothing is left to guard")
	}
	return err
}

// cniGates wait for files that others install, if --cni-wait asks for it. The step
// reports those still missing.
func (a *app) cniGates(i cniinstall.Install) []bootstrap.Step {
	if a.cniWait <= 0 || i.Plugins == nil && i.Config == nil || a.leftOut(stepCNI) {
		return nil
	}
	return []bootstrap.Step{{Name: "cni-wait", Optional: true, Gate: gate.Gate{
		Name: "the plugins and configurations of others", Probe: i.Missing, Where: []string{"mnt", "net"}, Timeout: a.cniWait, Every: 500 * time.Millisecond,
	}}}
}

// unwritten names the flag that prevents writing a CNI configuration although others ask
// for one.
func (a *app) unwritten() string {
	switch {
	case a.cniConf+a.cniConfKey+a.cniChain+a.cniTemplate == "":
	case a.userManagedConf:
		return "no CNI configuration is written: --custom-cni-conf leaves it to another program"
	case a.writeWhenReady != "":
		return "no CNI configuration is written: --write-cni-conf-when-ready leaves it to the agent"
	}
	return ""
}

// installing returns i, extended to report the parts that a flag leaves out.
func (a *app) installing(i cniinstall.Install) installing {
	switch why := a.unwritten(); {
	case i.Config != nil:
	case why != "":
		return installing{i, []string{why}}
	case !a.userManagedConf && a.writeWhenReady == "":
		return installing{i, []string{"no CNI configuration is written, so the container runtime calls these plugins only where another one names them: --cni-template, --cni-conf, --cni-conf-key and --cni-chain each write one"}}
	}
	return installing{Install: i}
}

// installing adds what a flag leaves out.
type installing struct {
	cniinstall.Install
	advice []string
}

// Wants says that no other step brings what the node lacks, such as a plugin: a command that
// runs once changes nothing then.
func (i installing) Wants(ctx context.Context) (ledger.Wants, error) {
	wants, err := i.Install.Wants(ctx)
	for n, w := range wants.List {
		if w.Ready == nil {
			continue
		}
		wants.List[n].Ready = func(ctx context.Context) error {
			return bootstrap.Certain(w.Ready(ctx))
		}
	}
	return wants, bootstrap.Certain(err)
}

func (i installing) Advise(ctx context.Context) ([]string, error) {
	advice, err := i.Install.Advise(ctx)
	return append(advice, i.advice...), err
}

// install describes the files for the CNI
// directories. Its sources are on this side, so they are opened here, before anything runs in
// the host's namespaces.
func (a *app) install(ctx context.Context, config *configresolve.Config) (i cniinstall.Install, err error) {
	a.at.work(stepCNI, "")
	i = cniinstall.Cilium("")
	i.ConfName, i.Exclusive, i.BackupSuffix = a.cniConfName, a.cniExclusive, a.cniBackupSuffix
	if i.Config, err = a.cniConfig(ctx, config); err != nil {
		return i, err
	}
	i.Exclusive = i.Exclusive && i.Config != nil
	i.Vouched, i.AlsoBinDirs = a.pluginsElsewhere, a.alsoBinDirs
	if i.Optional = a.optionalPlugins; len(a.plugins) > 0 {
		if err := a.withPlugins(&i); err != nil {
			return i, err
		}
	}
	if i.Plugins == nil && i.Config == nil || a.leftOut(stepCNI) {
		return i, nil
	}
	if i = a.placed(ctx, i); i.Config != nil {
		err = a.statusCalled(ctx)
	}
	return i, err
}

// withPlugins adds the plugins in the directories of the flag, which stay open until the command
// has ended.
func (a *app) withPlugins(i *cniinstall.Install) error {
	var closeAll func() error
	err := a.using(stepCNI, &a.plugins, func() (err error) { i.Plugins, closeAll, err = cniinstall.OpenPlugins(a.plugins...); return err })
	if err != nil {
		return err
	}
	a.cleanups = append(a.cleanups, func() { _ = closeAll() }) // nothing was written
	i.Replace = []string{}
	if a.overwritePlugins {
		i.Replace = append(i.Replace, "*")
	}
	if a.overwriteLoopback {
		i.Replace = append(i.Replace, "loopback")
	}
	return nil
}

// cniConfig is the configuration that the flags ask for; nil: none.
func (a *app) cniConfig(ctx context.Context, config *configresolve.Config) (cniinstall.Config, error) {
	if a.userManagedConf || a.writeWhenReady != "" {
		return nil, nil
	}
	if a.cniVersion != "" && (a.cniTemplate == "" || a.cniConf != "" || a.cniConfKey != "" || a.cniChain != "") {
		return nil, usage("--cni-version goes with --cni-template: any other configuration has its own")
	}
	agent := cniinstall.CiliumAgent(a.cniTemplate)
	agent.CNIVersion = a.cniVersion
	agent.Debug, agent.LogFile = a.cniDebug, a.cniLogFile
	switch {
	case a.cniConf != "":
		var conf cniinstall.Whole
		err := a.using(stepCNI, &a.cniConf, func() (err error) { conf, err = cniinstall.ReadWhole(ctx, a.cniConf); return err })
		return conf, err
	case a.cniConfKey != "":
		content, ok := "", false
		if config != nil {
			content, ok = config.Lookup(a.cniConfKey)
		}
		if !ok {
			return nil, fmt.Errorf("--cni-conf-key: no source gives the key %q", a.cniConfKey)
		}
		return cniinstall.Whole(content), nil
	case a.cniChain != "":
		agent.Network = "" // the target's
		return cniinstall.Chained{Network: a.cniChain, Agent: agent, InPlace: a.cniChainInPlace}, nil
	case a.cniTemplate != "":
		return agent, nil
	}
	return nil, nil
}

// agentsConfStep removes the file that the agent wrote by itself, if a flag says that it
// does.
func (a *app) agentsConfStep(ctx context.Context) ([]bootstrap.Step, error) {
	if a.writeWhenReady == "" || a.userManagedConf {
		return nil, nil
	}
	if err := a.search(ctx); err != nil {
		return nil, err
	}
	dir := a.confDirs[0]
	c := cniinstall.AgentConf{
		ConfName:  filepath.Base(a.writeWhenReady), // its directory is the agent's, not the host's
		Uninstall: cniinstall.Uninstall{ConfDir: dir, Force: a.keepPlugins || a.force, Sandboxes: a.sandboxes},
	}
	own := cleanup.Ownership{
		Agent: cleanup.Cilium().Agent, Files: []string{filepath.Join(dir, c.ConfName)},
		Exceptions: []cleanup.Exception{{Kind: "cni-directory", Name: dir}},
	}
	if err := own.Validate(); err != nil {
		return nil, usage("--write-cni-conf-when-ready: %w", err)
	}
	return []bootstrap.Step{{Name: "agents-conf", Action: c}}, nil
}
