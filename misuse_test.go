// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package slipway_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/bpfmap"
	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/bootstrap/gate"
	"github.com/slipway-dev/slipway/bootstrap/hostlocal"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/bootstrap/reconcile"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/configresolve/kube"
	"github.com/slipway-dev/slipway/sysctl"
)

// second is the error of a call that also returns another value.
func second[T any](_ T, err error) error { return err }

// here is the test's own host. Nothing below locks it.
var here = hostns.Host{Here: true, LockFile: "/nowhere/lock"}

func run(steps ...bootstrap.Step) func(context.Context) error {
	return apply(&bootstrap.Plan{Host: here, Steps: steps})
}

func apply(p *bootstrap.Plan) func(context.Context) error {
	return func(ctx context.Context) error { return second(p.Apply(ctx)) }
}

// journaled applies a plan with a journal.
func journaled(n *journal.Node, steps ...bootstrap.Step) func(context.Context) error {
	return apply(&bootstrap.Plan{Host: here, Journal: n, Steps: steps})
}

func nothing(context.Context) error { return nil }

func resolve(sources ...configresolve.Source) func(context.Context) error {
	return func(ctx context.Context) error { return second(configresolve.Resolve(ctx, sources...)) }
}

// A missing argument is an error that names it: no panic, and nothing that a mode which
// tolerates absent or unsupported objects hides.
func TestWhatWasNotGivenIsAnErrorThatSaysSo(t *testing.T) {
	zero := &kube.Client{}
	pinned := []bootstrap.Step{{Name: "s", Action: bpfmap.Pinned{Dir: "/sys/fs/bpf/x"}}}
	waiting := []bootstrap.Step{{Name: "g", Action: gate.File("/nowhere")}}
	recorder := func() *journal.Node {
		return &journal.Node{Dir: filepath.Join(t.TempDir(), "state"), Agent: "agent", NoOwner: true}
	}
	for name, misuse := range map[string]struct {
		call func(ctx context.Context) error
		want string
	}{
		"nil source":                {resolve(nil), "read source nil: no source given"},
		"nil source after another":  {resolve(configresolve.Static{}, nil), "read source nil: no source given"},
		"optional nil source":       {resolve(configresolve.Optional(nil)), "read source nil: no source given"},
		"optional optional nil":     {resolve(configresolve.Optional(configresolve.Optional(nil))), "read source nil: no source given"},
		"dir without path":          {resolve(configresolve.Optional(configresolve.Dir{})), "no path given"},
		"file without path":         {resolve(configresolve.Optional(configresolve.File{})), "no path given"},
		"env without prefix":        {resolve(configresolve.Optional(configresolve.Env{})), "empty prefix"},
		"config map without client": {resolve(configresolve.Optional(kube.ConfigMap{Namespace: "n", Name: "c"})), "no client given"},
		"zero client":               {resolve(configresolve.Optional(kube.ConfigMap{Client: zero, Namespace: "n", Name: "c"})), "no client given"},
		"node configs, zero client": {resolve(configresolve.Optional(kube.NodeConfigs{Client: zero, Namespace: "n"})), "no client given"},
		"node configs, no resource": {resolve(configresolve.Optional(kube.NodeConfigs{Namespace: "n"})), "no client given"},
		"node, zero client":         {resolve(configresolve.Optional(kube.Node{Client: zero, Name: "n", Prefix: "p"})), "no client given"},
		"node without prefix":       {resolve(configresolve.Optional(kube.Node{Client: zero, Name: "n"})), "needs the prefix"},
		"watch of a nil source": {func(ctx context.Context) error {
			return kube.Watch(ctx, configresolve.Resolver{Sources: []configresolve.Source{nil}}, func(configresolve.Update) error { return nil })
		}, "no source given"},
		"watch without report":     {func(ctx context.Context) error { return kube.Watch(ctx, configresolve.Resolver{}, nil) }, "no function given to report to"},
		"zero connection, no pod":  {func(context.Context) error { return second(kube.Connection{}.Client()) }, "outside a pod, give a kubeconfig"},
		"directory without path":   {run(bootstrap.Step{Name: "s", Action: configdir.Writer{Config: &configresolve.Config{}}}), "no directory given"},
		"directory without config": {run(bootstrap.Step{Name: "s", Action: configdir.Writer{Path: "/nowhere"}}), "no configuration given"},
		"write of no config":       {func(ctx context.Context) error { return second(configdir.Write(ctx, "/nowhere", nil)) }, "no configuration given"},
		"nil action":               {run(bootstrap.Step{Name: "s"}), `step "s" has no action`},
		"nil functions": {func(ctx context.Context) error {
			return run(bootstrap.Step{Name: "s", Action: bootstrap.Func(nil, nil)})(ctx)
		}, "has no function to check with"},
		"retry of nil":         {run(bootstrap.Step{Name: "s", Action: bootstrap.Retry(nil, nil)}), "no action given"},
		"retry of nil, apply":  {bootstrap.Retry(nil, nil).Apply, "no action given"},
		"retry of nil, revert": {bootstrap.Retry(nil, nil).(bootstrap.Reverter).Revert, "no action given"},
		"nil functions inside": {func(ctx context.Context) error {
			return run(bootstrap.Step{Name: "s", Action: bootstrap.Func(nil, nil).In("mnt").Recording("x")})(ctx)
		}, "has no function to check with"},
		"no function inside":        {func(ctx context.Context) error { return hostns.Do(ctx, "/proc/self", hostns.UTS, nil) }, "no function given"},
		"loop without plan":         {reconcile.Loop{}.Run, "a loop needs a plan"},
		"no function on this host":  {func(ctx context.Context) error { return hostns.Host{}.Do(ctx, hostns.Mount, nil) }, "no function given"},
		"no function, no namespace": {func(ctx context.Context) error { return hostns.Host{}.Enter(ctx, nil, nil) }, "no function given"},
		"no such namespace":         {func(ctx context.Context) error { return hostns.Host{}.Enter(ctx, []string{"mount"}, nothing) }, `no kind "mount"`},
		"no function inside a plan": {func(ctx context.Context) error { return (&bootstrap.Plan{}).Inside(ctx, "s", nil, nil) }, "no function given"},
		"nil journal, inside a plan": {func(ctx context.Context) error {
			return (&bootstrap.Plan{Host: here, Journal: (*journal.Node)(nil)}).Inside(ctx, "s", nil, nothing)
		}, "the journal is a nil *"},
		"host action, and no host":      {apply(&bootstrap.Plan{Steps: pinned}), `step "s" acts on a host (bpfmap.Pinned), and the plan has none: set Host`},
		"gate on the host, and no host": {apply(&bootstrap.Plan{Gates: waiting}), `step "g" acts on a host (gate.Gate), and the plan has none`},
		"gate without probe":            {apply(&bootstrap.Plan{Gates: []bootstrap.Step{{Name: "g", Action: gate.Gate{Name: "x"}}}}), "a gate needs a Name and a Probe"},
		"gate without action":           {apply(&bootstrap.Plan{Gates: []bootstrap.Step{{Name: "g"}}}), `gate "g" has no action`},
		"journal and no host":           {apply(&bootstrap.Plan{Journal: recorder()}), "it has a journal and no Host"},
		"nil journal":                   {journaled(nil), "the journal is a nil *"},
		"journal of nobody":             {journaled(&journal.Node{Agent: "agent"}), "no owner is named: set Owner, such as a pod's UID, or NoOwner"},
		"journal without agent":         {journaled(&journal.Node{NoOwner: true}), "the agent has no name: set Agent"},
		"journal without handler":       {journaled(recorder(), pinned...), "the journal has no handler for what it records, bpfmap/"},
		"journal, and no recorder":      {journaled(recorder(), bootstrap.Step{Name: "s", Action: bootstrap.Func(nil, nil)}), "says neither what it records (it is no Recorder) nor how it is reverted (implement Kinds, use Func(...).Recording, or set NoUndo if that is meant)"},
		"everything, and no journal":    {func(ctx context.Context) error { return second((&bootstrap.Plan{}).RevertAll(ctx)) }, "the plan has no journal, so nothing is recorded that could be undone"},
		"record for no step": {func(ctx context.Context) error {
			j, err := recorder().Open(ctx, nil)
			require.NoError(t, err)
			return errors.Join(j.Begin(ctx, journal.Entry{Kind: "x", Object: "y"}), j.Close())
		}, "no step to record for: run the action in a plan that has the journal, or give it Journal.Step"},
		"journal in a relative directory": {func(context.Context) error {
			return second((&journal.Node{Dir: "state", Agent: "agent", NoOwner: true}).Open(context.Background(), nil))
		}, "is not an absolute path"},
		"nil handler": {func(context.Context) error {
			return second((&journal.Node{Dir: "/nowhere", Agent: "agent", NoOwner: true, Handlers: []journal.Handler{bpffs.Handler{}, nil}}).Open(context.Background(), nil))
		}, "handler 2 of 2 is nil"},
		"host path without path":     {run(bootstrap.Step{Name: "s", Action: hostpath.Paths{List: []hostpath.Path{{Type: hostpath.Directory}}}}), "is not absolute"},
		"any host path without path": {run(bootstrap.Step{Name: "s", Action: hostpath.Paths{List: []hostpath.Path{{}}}}), "is not absolute"},
		"content without path":       {run(bootstrap.Step{Name: "s", Action: hostpath.Content{Bytes: []byte("x")}}), "is not absolute"},
		"file without content":       {run(bootstrap.Step{Name: "s", Action: hostpath.Content{Path: "/nowhere"}}), "no content is given"},
		"runtime without path":       {func(ctx context.Context) error { return second(cri.Endpoint{Path: "unix://"}.Status(ctx)) }, "want the absolute path of a unix socket"},
		"loaded without file":        {run(bootstrap.Step{Name: "s", Action: cri.Loaded{}}), "no function given that reads the configuration"},
		"addresses of no runtime":    {run(bootstrap.Step{Name: "s", Action: hostlocal.Store{}}), "no function given that lists the sandboxes"},
		"maps without path":          {run(bootstrap.Step{Name: "s", Action: bpfmap.Pinned{}}), "no maps given"},
		"bpffs without path":         {func(context.Context) error { return bpffs.EnsureMounted("") }, "no path given"},
		"cgroup without path":        {func(context.Context) error { return cgroup.EnsureMounted("") }, "no path given"},
		"id of no cgroup":            {func(context.Context) error { return second(cgroup.ID("")) }, "no path given"},
		"open no cgroup":             {func(context.Context) error { return second(cgroup.Open("")) }, "no path given"},
		"zero drop-in":               {run(bootstrap.Step{Name: "s", Action: sysctl.DropIn{}}), "no name and no settings given"},
		"no key":                     {func(context.Context) error { return second(sysctl.Kernel{}.Get("")) }, "not a sysctl key"},
		"bpffs of a nil kernel":      {run(bootstrap.Step{Name: "s", Action: bpffs.Mount{Path: "/nowhere", Kernel: (*bootstraptest.Kernel)(nil)}}), "the kernel is a nil *bootstraptest.Kernel"},
		"cgroup of a nil kernel":     {run(bootstrap.Step{Name: "s", Action: cgroup.Mount{Path: "/nowhere", Kernel: (*bootstraptest.Kernel)(nil)}}), "the kernel is a nil *bootstraptest.Kernel"},
		"values of a nil kernel":     {run(bootstrap.Step{Name: "s", Action: sysctl.Settings{Values: sysctl.Forwarding(), Kernel: sysctl.Kernel{Files: (*bootstraptest.Kernel)(nil)}}}), "the kernel is a nil *bootstraptest.Kernel"},
		"CNI without name":           {run(bootstrap.Step{Name: "s", Action: cniinstall.Install{Config: cniinstall.Whole("{}")}}), "no file name given"},
		"zero CNI agent":             {func(ctx context.Context) error { return second(cniinstall.Agent{}.Render(ctx, "/nowhere")) }, "no agent plugin given"},
		"zero chained":               {func(ctx context.Context) error { return second(cniinstall.Chained{}.Render(ctx, "/nowhere")) }, "no agent plugin given"},
		"uninstall by no directory":  {func(context.Context) error { return second(cniinstall.UninstallEnabled("")) }, "no directory of the agent's configuration given"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			err := misuse.call(t.Context())
			require.ErrorContains(t, err, misuse.want)
			require.NotErrorIs(t, err, configresolve.ErrMissing)
			if !strings.HasPrefix(name, "nil functions") { // that is an action without functions, which a plan can still revert
				require.NotErrorIs(t, err, errors.ErrUnsupported)
			}
		})
	}
}
