// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/gate"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/kmod"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/sysctl"
)

// The steps of a node's plan, in their order.
const (
	stepConfig    = "config"
	stepCleanup   = "cleanup"
	stepHostPaths = "host-paths"
	stepCgroup    = "cgroup"
	stepSysctl    = "sysctl"
	stepBPFFS     = "bpffs"
	stepCNI       = "cni"
)

var stepNames = []string{stepConfig, stepCleanup, stepHostPaths, stepCgroup, stepSysctl, stepBPFFS, stepCNI}

// stepModules comes before sysctl, where --kernel-modules asks for it: some keys are a
// module's. Nothing of it is undone.
const stepModules = "modules"

// hostPaths are the paths that an agent's pod mounts from the host and expects to exist.
var hostPaths = hostpath.Paths{
	{Path: "/var/run/cilium", Type: "DirectoryOrCreate"},
	{Path: "/var/run/netns", Type: "DirectoryOrCreate"},
	{Path: "/run/xtables.lock", Type: "FileOrCreate"},
}

// nodePlan is the whole plan. Its steps need config, which is resolved
// beforehand; nil is for a plan that is only reverted, or one that failed.
func (a *app) nodePlan(ctx context.Context, config *configresolve.Config) (*bootstrap.Plan, error) {
	install, err := a.install(ctx, config)
	if err != nil {
		return nil, err
	}
	a.at.work(stepCleanup, "")
	cleaning, err := a.cleanupStep(ctx, config)
	if err != nil {
		return nil, err
	}
	// The configuration tells the kubelet that the node's network is ready, so it comes
	// after everything else that an agent needs.
	cni := bootstrap.Step{
		Name: stepCNI, After: []string{stepHostPaths, stepCgroup, stepSysctl, stepBPFFS},
		Wants: a.installing(install),
	}
	if install.Plugins == nil && install.Config == nil {
		cni.Skip = cmp.Or(a.unwritten(), nothingToInstall)
		if a.row.only == stepCNI { // such as where a variable of the manifest is empty
			return nil, usage("%s", cni.Skip)
		}
	}
	writing := bootstrap.Step{Name: stepConfig, Wants: configdir.Writer{Path: a.dest, Config: config}, Local: true}
	if len(a.sources) == 0 {
		writing.Skip = "no --source is given"
	}
	var steps []bootstrap.Step
	if a.preflight && !a.leftOut(stepPreflight) {
		steps = append(steps, a.preflightStep(config, install))
	}
	steps = append(steps,
		writing, cleaning,
		bootstrap.Step{Name: stepHostPaths, Wants: hostPaths},
		bootstrap.Step{Name: stepCgroup, Wants: cgroup.Mount{Path: a.cgroupRoot, Repair: a.cgroupRepair}},
	)
	setting := bootstrap.Step{Name: stepSysctl, Wants: a.sysctlWants()}
	if len(a.modules) > 0 {
		setting.After = []string{stepModules}
		steps = append(steps, bootstrap.Step{Name: stepModules, Action: kmod.Modules{List: a.modules, Load: true}})
	}
	bpf := bpffs.Mount{Path: a.bpfRoot, Fallback: a.bpfFallback, Shared: a.bpfShared}
	steps = append(steps, setting, bootstrap.Step{Name: stepBPFFS, Wants: bpf})
	p := a.plan(ctx, append(steps, a.cniSteps(cni, install)...)...)
	p.Gates = append(a.kubeProxyGates(config), a.cniGates(install)...)
	a.choose(p)
	return p, nil
}

// choose leaves out steps as --skip and --only require. A command that is one step has no
// others to show.
func (a *app) choose(p *bootstrap.Plan) {
	if a.row.only != "" {
		p.Steps = slices.DeleteFunc(p.Steps, func(s bootstrap.Step) bool { return a.leftOut(s.Name) && s.Name != stepLoaded })
		p.Steps[0].After = nil
	}
	for i, s := range p.Steps {
		if a.leftOut(s.Name) && s.Name != stepLoaded { // which goes with cni
			p.Steps[i].Skip = a.leftOutBy(s.Name)
		}
	}
}

// stepsToRun are the plan's, as far as they are known before the configuration is.
func (a *app) stepsToRun() []string {
	switch {
	case a.row.only != "":
		return a.only
	case len(a.modules) == 0:
		return stepNames
	}
	return slices.Insert(slices.Clone(stepNames), slices.Index(stepNames, stepSysctl), stepModules)
}

func choosable() []string { return append(slices.Clone(stepNames), stepModules, stepPreflight) }

func (a *app) leftOut(step string) bool { return a.leftOutBy(step) != "" }

// leftOutBy is the flag that leaves the step out, if there is one.
func (a *app) leftOutBy(step string) string {
	switch {
	case slices.Contains(a.skip, step):
		return "in --skip"
	case len(a.only) > 0 && !slices.Contains(a.only, step):
		return "not in --only"
	}
	return ""
}

// host is the node, as this process reaches it.
func (a *app) host() hostns.Host {
	return hostns.Host{
		Proc: a.hostProc, Here: a.here,
		LockTimeout: cmp.Or(a.lockTimeout, -1), // zero: not at all; there it is the default
	}
}

// checkHost reports early, and once, that the host cannot be entered.
func (a *app) checkHost() error {
	return a.using("", &a.hostProc, a.host().Check)
}

func (a *app) sysctlWants() ledger.Wanter {
	d := sysctl.Cilium()
	d.Dir, d.Name, d.Reload = a.sysctlConfDir, a.sysctlConfFile, a.sysctlUnit
	if settings, _ := sysctl.Parse(strings.NewReader(strings.Join(a.sysctls, "\n"))); len(settings) > 0 { // else there are none but comments; checked
		d.Settings = settings
	}
	if a.sysctlConfDir == "" {
		return sysctl.Settings{Values: d.Settings}
	}
	return d
}

// cleanupStep runs if the environment or the configuration asks for it. Objects of this
// plan stay: uninstall removes them.
func (a *app) cleanupStep(ctx context.Context, config *configresolve.Config) (bootstrap.Step, error) {
	if a.leftOut(stepCleanup) {
		return bootstrap.Step{Name: stepCleanup, Action: cleanup.Leftovers{}}, nil
	}
	scope, ignored := a.scopeFrom(config)
	for _, text := range ignored {
		a.logger().Warn(bootstrap.OneLine(text), "step", stepCleanup)
	}
	if scope != "" {
		if err := a.search(ctx); err != nil {
			return bootstrap.Step{}, err
		}
	}
	c := cleanup.Leftovers{
		Ownership: a.ownership(), Scope: scope, BPFRoots: a.bpfRoots(),
		Keep:       []string{a.cgroupRoot, a.bpfRoot},
		StrandPods: true, // until the plan has installed the files that they need
	}
	// This node is about to get its agent: only the cleanup command restores files that
	// were set aside, which would give the node to another CNI.
	c.Ownership.SetAside = nil
	if a.hostProc == "" {
		dest, err := filepath.Abs(a.dest)
		if err != nil {
			return bootstrap.Step{}, err
		}
		c.Keep = append(c.Keep, dest)
	}
	for _, p := range hostPaths {
		c.KeepDirs = append(c.KeepDirs, p.Path)
	}
	step := bootstrap.Step{Name: stepCleanup, Action: cleaning{c, ignored}}
	if scope == "" {
		step.Skip = strings.Join(append([]string{"neither the environment nor the configuration asks for it"}, ignored...), "; ")
	}
	return step, nil
}

// cleaning is a cleanup, and what asks for one in vain.
type cleaning struct {
	cleanup.Leftovers
	ignored []string
}

func (c cleaning) Advise(context.Context) ([]string, error) { return c.ignored, nil }

// scopeFrom is the scope that the environment and the configuration select, and what does
// not count there although it is set: exactly "true" destroys, from a trusted source.
func (a *app) scopeFrom(config *configresolve.Config) (scope string, ignored []string) {
	exact := func(name string, lookup func(string) (string, bool)) (string, bool) {
		value, ok := lookup(name)
		if value != "true" && !slices.Contains([]string{"", "false"}, strings.TrimSpace(value)) {
			ignored = append(ignored, fmt.Sprintf("ignored: %s = %.100q: only \"true\" counts", name, value))
		}
		return value, ok
	}
	env := func(name string) (string, bool) { return exact(name, a.getenv) }
	if config == nil {
		scope = cleanup.CiliumScope(env, nil)
		return scope, ignored
	}
	scope = cleanup.CiliumScope(env, func(key string) (string, bool) {
		value, trusted := config.Trusted(key)
		if given, _ := exact(key, config.Lookup); !trusted && given == "true" {
			entry := config.Explain(key).Keys[0]
			ignored = append(ignored, fmt.Sprintf("ignored: %s = true from %s: a key that destroys counts from the environment, and from the first --source unless that is a node (set it there, or run nodeinit cleanup)",
				key, strings.TrimSpace(entry.Source.String()+" "+entry.Part)))
		}
		return value, trusted
	})
	return scope, ignored
}

// needsRoot explains, before anything is done, a failure that would come in the middle.
func needsRoot(euid int, command string) error {
	if euid == 0 {
		return nil
	}
	return fmt.Errorf("%s needs root (in a pod, securityContext: {runAsUser: 0}; at a prompt, sudo nodeinit %s)", command, command)
}

// kubeProxyGates wait for kube-proxy's rules, if --wait-for-kube-proxy asks for it.
func (a *app) kubeProxyGates(config *configresolve.Config) []bootstrap.Step {
	if a.kubeProxyWait <= 0 {
		return nil
	}
	g := gate.KubeProxy()
	g.Timeout = a.kubeProxyWait
	step := bootstrap.Step{Name: "kube-proxy", Gate: g}
	if replacesKubeProxy(config) {
		step.Skip = "the agent replaces kube-proxy: kube-proxy-replacement"
	}
	return []bootstrap.Step{step}
}

// replacesKubeProxy reports the setting that Cilium's chart checks before it waits for
// kube-proxy.
func replacesKubeProxy(config *configresolve.Config) bool {
	if config == nil {
		return false
	}
	return slices.Contains([]string{"true", "strict"}, interpreted(config, "kube-proxy-replacement"))
}
