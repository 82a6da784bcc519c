// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package slipway_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bpfmap"
	"github.com/slipway-dev/slipway/bootstrap/cri"
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

// second is the error of a call that returns something else too.
func second[T any](_ T, err error) error { return err }

func run(steps ...bootstrap.Step) func(context.Context) error {
	return func(ctx context.Context) error { return second((&bootstrap.Plan{Steps: steps}).Apply(ctx)) }
}

func resolve(sources ...configresolve.Source) func(context.Context) error {
	return func(ctx context.Context) error { return second(configresolve.Resolve(ctx, sources...)) }
}

// What is missing is said: it is no panic, nor does anything that tolerates what
// is not there, or what cannot be done, tolerate it.
func TestWhatWasNotGivenIsAnErrorThatSaysSo(t *testing.T) {
	zero := &kube.Client{}
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
		"directory without path":   {run(bootstrap.Step{Name: "s", Action: configdir.Dir{Config: &configresolve.Config{}}}), "no directory given"},
		"directory without config": {run(bootstrap.Step{Name: "s", Action: configdir.Dir{Path: "/nowhere"}}), "no configuration given"},
		"write of no config":       {func(ctx context.Context) error { return second(configdir.Write(ctx, "/nowhere", nil)) }, "no configuration given"},
		"nil action":               {run(bootstrap.Step{Name: "s"}), `step "s" has no action`},
		"nil functions": {func(ctx context.Context) error {
			return run(bootstrap.Step{Name: "s", Action: bootstrap.Func(nil, nil)})(ctx)
		}, "has no function to check with"},
		"retry of nil":              {run(bootstrap.Step{Name: "s", Action: bootstrap.Retry(nil, nil)}), "no action given"},
		"retry of nil, apply":       {bootstrap.Retry(nil, nil).Apply, "no action given"},
		"retry of nil, revert":      {bootstrap.Retry(nil, nil).(bootstrap.Reverter).Revert, "no action given"},
		"nil action inside":         {run(bootstrap.Step{Name: "s", Action: hostns.In("/proc/self", hostns.UTS, nil)}), "no action given"},
		"nil action inside, apply":  {hostns.In("/proc/self", hostns.UTS, nil).Apply, "no action given"},
		"nil action inside, revert": {hostns.In("/proc/self", hostns.UTS, nil).Revert, "no action given"},
		"zero wrapped":              {hostns.Wrapped{}.Apply, "no action given"},
		"no function inside":        {func(ctx context.Context) error { return hostns.Do(ctx, "/proc/self", hostns.UTS, nil) }, "no function given"},
		"loop without plan":         {reconcile.Loop{}.Run, "a loop needs a plan"},
		"journal without directory": {func(context.Context) error {
			return second((&journal.Node{Dir: "", Agent: "agent", NoOwner: true}).Open(context.Background(), nil))
		}, "is not an absolute path"},
		"nil handler": {func(context.Context) error {
			return second((&journal.Node{Dir: "/nowhere", Agent: "agent", NoOwner: true, Handlers: []journal.Handler{bpffs.Handler{}, nil}}).Open(context.Background(), nil))
		}, "handler 2 of 2 is nil"},
		"nil handler inside": {func(context.Context) error {
			return second((&journal.Node{Dir: "/nowhere", Agent: "agent", NoOwner: true, Handlers: []journal.Handler{journal.In(nil, nil)}}).Open(context.Background(), nil))
		}, "handler 1 of 1 is nil"},
		"host path without path":     {run(bootstrap.Step{Name: "s", Action: hostpath.Paths{List: []hostpath.Path{{Type: hostpath.Directory}}}}), "is not absolute"},
		"any host path without path": {run(bootstrap.Step{Name: "s", Action: hostpath.Paths{List: []hostpath.Path{{}}}}), "is not absolute"},
		"runtime without path":       {func(ctx context.Context) error { return second(cri.Endpoint{Path: "unix://"}.Status(ctx)) }, "want the absolute path of a unix socket"},
		"loaded without file":        {run(bootstrap.Step{Name: "s", Action: cri.Loaded{}}), "no function given that reads the configuration"},
		"maps without path":          {run(bootstrap.Step{Name: "s", Action: bpfmap.Pinned{}}), "no maps given"},
		"bpffs without path":         {func(context.Context) error { return bpffs.EnsureMounted("") }, "no path given"},
		"cgroup without path":        {func(context.Context) error { return cgroup.EnsureMounted("") }, "no path given"},
		"id of no cgroup":            {func(context.Context) error { return second(cgroup.ID("")) }, "no path given"},
		"open no cgroup":             {func(context.Context) error { return second(cgroup.Open("")) }, "no path given"},
		"zero drop-in":               {run(bootstrap.Step{Name: "s", Action: sysctl.DropIn{}}), "no name and no settings given"},
		"no key":                     {func(context.Context) error { return second(sysctl.Kernel{}.Get("")) }, "not a sysctl key"},
		"CNI without name":           {run(bootstrap.Step{Name: "s", Action: cniinstall.Install{Config: cniinstall.Whole("{}")}}), "no name given for the file"},
		"zero CNI agent":             {func(ctx context.Context) error { return second(cniinstall.Agent{}.Render(ctx, "/nowhere")) }, "no plugin of the agent given"},
		"zero chained":               {func(ctx context.Context) error { return second(cniinstall.Chained{}.Render(ctx, "/nowhere")) }, "no plugin of the agent given"},
		"uninstall by no directory":  {func(context.Context) error { return second(cniinstall.UninstallEnabled("")) }, "no directory of the agent's configuration given"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			err := misuse.call(t.Context())
			require.ErrorContains(t, err, misuse.want)
			require.NotErrorIs(t, err, configresolve.ErrMissing)
			if name != "nil functions" { // an action that can do nothing, but for what a plan would revert
				require.NotErrorIs(t, err, errors.ErrUnsupported)
			}
		})
	}
}
