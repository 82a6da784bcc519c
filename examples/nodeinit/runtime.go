// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	cniversion "github.com/containernetworking/cni/pkg/version"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cniinstall"
)

// auto selects the CNI directory where the container runtime looks, or else the usual one.
const (
	auto         = "auto"
	usualBinDir  = "/opt/cni/bin"
	usualConfDir = "/etc/cni/net.d"
)

// stepLoaded follows the cni step where --wait-loaded asks for it.
const stepLoaded = "cni-loaded"

// dirOr returns the directory of a flag, or the usual one as long as no runtime was asked.
func dirOr(flag, usual string) string {
	if flag == auto || flag == "" {
		return usual
	}
	return flag
}

// placed returns i in the directories of the flags, else in those that it chooses by the
// records and by what the runtime says.
func (a *app) placed(ctx context.Context, i cniinstall.Install) cniinstall.Install {
	i.BinDir, i.ConfDir = dirOr(a.cniBinDir, ""), dirOr(a.cniConfDir, "")
	i.Remedy = "--cni-bin-dir and --cni-conf-dir set the directories; auto means those of the runtime"
	i.Runtime, i.RuntimeErr = a.runtime(ctx)
	return i
}

// search finds the directories in which an agent's plugins and configurations are searched:
// those of the flags, all of the runtime's, and if no flag says otherwise the recorded or
// the usual ones. They need to be neither writable nor for CNI by their names: nothing is
// installed there. It warns where it had to assume some.
func (a *app) search(ctx context.Context) error {
	known := a.placed(ctx, cniinstall.Install{})
	looks, binDir, confDir := known.Runtime, known.BinDir, known.ConfDir
	known.Runtime = cri.CNI{}
	var notes []string
	err := a.host().Do(ctx, []string{"mnt"}, func(ctx context.Context) (err error) {
		if known, err = known.ResolveDirs(ledger.With(ctx, a.book)); err == nil {
			notes, err = known.Advise(ctx)
		}
		return err
	})
	for _, text := range notes {
		a.warn(text)
	}
	a.binDirs = distinct(slices.Concat([]string{binDir}, looks.PluginDirs, []string{known.BinDir})...)
	a.confDirs = distinct(confDir, looks.ConfDir, known.ConfDir)
	return err
}

func (a *app) warn(text string) { a.logger().Warn(bootstrap.OneLine(text)) }

// distinct returns the directories that are given, each once.
func distinct(dirs ...string) (all []string) {
	for _, dir := range dirs {
		if dir != "" && !slices.Contains(all, filepath.Clean(dir)) {
			all = append(all, filepath.Clean(dir))
		}
	}
	return all
}

// runtime returns the directories of the node's container runtime, as it reports them.
func (a *app) runtime(ctx context.Context) (cri.CNI, error) {
	if a.prefixed {
		return cri.CNI{}, nil // the paths are not those that the runtime knows
	}
	return a.endpoint().CNI(ctx)
}

// statusCalled returns an error if --cni-version selects a version with which runtimes ask
// the plugins for their STATUS, and this node's runtime does not, or does not report its
// version: it may be unable to read such a configuration.
func (a *app) statusCalled(ctx context.Context) error {
	if asks, err := cniversion.GreaterThanOrEqualTo(cmp.Or(a.cniVersion, "1.0.0"), "1.1.0"); err != nil || !asks {
		return err
	}
	ctx, cancel := withinAnswer(ctx)
	defer cancel()
	if err := a.endpoint().CallsStatus(ctx); err != nil {
		return fmt.Errorf("--cni-version %s: %w (1.0.0 is for every runtime; none asks for the plugins' STATUS then)", a.cniVersion, err)
	}
	return nil
}

// withinAnswer returns ctx with the time limit for a runtime that has just reported its
// directories.
func withinAnswer(ctx context.Context) (context.Context, context.CancelFunc) {
	const limit = 10 * time.Second
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v", limit))
}

// sandboxes lists the runtime's sandboxes, once it is proven to be the host's. One that gave
// no answer is not asked again.
func (a *app) sandboxes(ctx context.Context) (ids []string, err error) {
	if a.unlisted != nil {
		return nil, a.unlisted
	}
	ctx, cancel := withinAnswer(ctx)
	defer cancel()
	ids, a.unlisted = a.endpoint().SandboxIDs(ctx)
	return ids, a.unlisted
}

// endpoint is the runtime's, if a flag sets it.
func (a *app) endpoint() cri.Endpoint {
	return cri.Endpoint{HostProc: a.hostProc, Path: a.runtimeEndpoint}
}

// cniSteps are the cni step and, where it is asked for, the one that waits for the
// runtime. The kubelet's word follows from the runtime's.
func (a *app) cniSteps(cni bootstrap.Step, i cniinstall.Install) []bootstrap.Step {
	steps := []bootstrap.Step{cni}
	if a.waitLoaded <= 0 || i.Config == nil {
		return steps
	}
	loaded := bootstrap.Step{
		Name: stepLoaded, After: []string{stepCNI}, Timeout: a.waitLoaded,
		Action: cri.Loaded{Endpoint: a.endpoint(), Conf: func(ctx context.Context) (conf []byte, err error) {
			err = a.host().Do(ctx, []string{"mnt"}, func(ctx context.Context) (err error) {
				conf, err = published(ledger.With(ctx, a.book), i)
				return err
			})
			return conf, err
		}},
	}
	if by := a.leftOutBy(stepCNI); by != "" {
		loaded.Skip = by
	}
	return append(steps, loaded)
}

// published returns the configuration that i has published, or put its plugin into.
func published(ctx context.Context, i cniinstall.Install) ([]byte, error) {
	i, err := i.ResolveDirs(ctx)
	if err != nil {
		return nil, err
	}
	all, err := cniinstall.Configs(ctx, i.ConfDir)
	chained, _ := i.Config.(cniinstall.Chained)
	for _, c := range all {
		if chained.InPlace && slices.Contains(c.Plugins, chained.Agent.Plugin) || !chained.InPlace && c.File == i.ConfName {
			return c.Raw, c.Err
		}
	}
	return nil, cmp.Or(err, fmt.Errorf("%s has no configuration of the agent's (yet)", i.ConfDir))
}
