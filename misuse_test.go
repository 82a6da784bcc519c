// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package slipway_test

import (
	"context"
	"errors"
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
	"github.com/slipway-dev/slipway/bootstrap/ledger"
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

// wants applies a plan with one step.
func wants(w ledger.Wanter) func(context.Context) error {
	return run(bootstrap.Step{Name: "s", Wants: w})
}

func action(a bootstrap.Action) func(context.Context) error {
	return run(bootstrap.Step{Name: "s", Action: a})
}

func gated(g bootstrap.Gate) func(context.Context) error {
	return apply(&bootstrap.Plan{Host: here, Gates: []bootstrap.Step{{Name: "g", Gate: g}}})
}

// recorded applies a plan with a ledger.
func recorded(l *ledger.Ledger) func(context.Context) error {
	return apply(&bootstrap.Plan{Host: here, Ledger: l})
}

func nothing(context.Context) error { return nil }

func resolve(sources ...configresolve.Source) func(context.Context) error {
	return func(ctx context.Context) error { return second(configresolve.Resolve(ctx, sources...)) }
}

// A missing argument is an error that names it: no panic, and nothing that a mode which
// tolerates absent or unsupported objects hides.
func TestWhatWasNotGivenIsAnErrorThatSaysSo(t *testing.T) {
	zero := &kube.Client{}
	for name, misuse := range map[string]struct {
		call func(ctx context.Context) error
		want string
	}{
		"zero source":               {resolve(configresolve.Source{}), "read source: one has no function Read"},
		"zero source after another": {resolve(configresolve.Static("", nil), configresolve.Source{}), "read source: one has no function Read"},
		"optional zero source":      {resolve(configresolve.Optional(configresolve.Source{})), "read source: one has no function Read"},
		"dir without path":          {resolve(configresolve.Optional(configresolve.Dir(""))), "no path given"},
		"file without path":         {resolve(configresolve.Optional(configresolve.File(""))), "no path given"},
		"env without prefix":        {resolve(configresolve.Optional(configresolve.Env("", nil))), "empty prefix"},
		"config map without client": {resolve(configresolve.Optional((*kube.Client)(nil).ConfigMap("n", "c"))), "no client given"},
		"zero client":               {resolve(configresolve.Optional(zero.ConfigMap("n", "c"))), "no client given"},
		"node configs, zero client": {resolve(configresolve.Optional(zero.NodeConfigs("n", ""))), "no client given"},
		"node configs, no resource": {resolve(configresolve.Optional((*kube.Client)(nil).NodeConfigs("n", ""))), "no client given"},
		"node, zero client":         {resolve(configresolve.Optional(zero.Node("n", "p"))), "no client given"},
		"node without prefix":       {resolve(configresolve.Optional(zero.Node("n", ""))), "needs the prefix"},
		"watch of a zero source": {func(ctx context.Context) error {
			return kube.Watch(ctx, configresolve.Resolver{Sources: []configresolve.Source{{}}}, func(configresolve.Update) error { return nil })
		}, "no function Read"},
		"watch without report":           {func(ctx context.Context) error { return kube.Watch(ctx, configresolve.Resolver{}, nil) }, "no function given to report to"},
		"zero connection, no pod":        {func(context.Context) error { return second(kube.Connection{}.Client()) }, "outside a pod, give a kubeconfig"},
		"directory without path":         {wants(configdir.Writer{Config: &configresolve.Config{}}), "no directory given"},
		"directory without config":       {wants(configdir.Writer{Path: "/nowhere"}), "no configuration given"},
		"write of no config":             {func(ctx context.Context) error { return second(configdir.Write(ctx, "/nowhere", nil)) }, "no configuration given"},
		"nothing to do":                  {run(bootstrap.Step{Name: "s"}), `step "s" has neither Wants nor an Action`},
		"nil functions":                  {action(bootstrap.Func("x", nil, nil)), "x: no function was given to check with"},
		"no function inside":             {func(ctx context.Context) error { return hostns.Do(ctx, "/proc/self", []string{"uts"}, nil) }, "no function given"},
		"loop without plan":              {reconcile.Loop{}.Run, "a loop needs a plan"},
		"no function on this host":       {func(ctx context.Context) error { return hostns.Host{}.Do(ctx, []string{"mnt"}, nil) }, "no function given"},
		"no function, no namespace":      {func(ctx context.Context) error { return hostns.Host{}.Do(ctx, nil, nil) }, "no function given"},
		"no such namespace":              {func(ctx context.Context) error { return hostns.Host{}.Do(ctx, []string{"mount"}, nothing) }, `no kind "mount"`},
		"gate without probe":             {gated(gate.Gate{Name: "x"}), "a gate needs a Name and a Probe"},
		"gate without a gate":            {gated(nil), `gate "g" has no Gate`},
		"ledger of nobody":               {recorded(&ledger.Ledger{Agent: "agent"}), "no owner is named: set Owner, such as a pod's UID, or NoOwner"},
		"ledger without agent":           {recorded(&ledger.Ledger{NoOwner: true}), `agent "" is not a DNS label`},
		"wants as an action":             {action(sysctl.DropIn{}), "as its Action, so that nothing would be recorded: set Wants"},
		"wants and an action":            {run(bootstrap.Step{Name: "s", Wants: hostpath.Paths{}, Action: bootstrap.Func("x", nil, nil)}), `step "s" has both Wants and an Action`},
		"gate among the steps":           {run(bootstrap.Step{Name: "s", Gate: gate.File("/nowhere")}), `step "s" is a gate: make it one of Gates`},
		"wants among the gates":          {apply(&bootstrap.Plan{Gates: []bootstrap.Step{{Name: "g", Wants: hostpath.Paths{}}}}), `gate "g" has Wants or an Action`},
		"nil pointer that wants":         {wants((*hostpath.Paths)(nil)), "has a nil *hostpath.Paths"},
		"everything, and no ledger":      {func(ctx context.Context) error { return second((&bootstrap.Plan{}).Uninstall(ctx)) }, "the plan has no ledger, so nothing is recorded that could be undone"},
		"ledger in a relative directory": {recorded(&ledger.Ledger{Dir: "state", Agent: "agent", NoOwner: true}), "is not an absolute path"},
		"nil kind":                       {recorded(&ledger.Ledger{Agent: "agent", NoOwner: true, Kinds: []*ledger.Kind{ledger.Dir(), nil}}), "kind 2 of 2 is nil"},
		"host path without path":         {wants(hostpath.Paths{{Type: "Directory"}}), "is not absolute"},
		"any host path without path":     {wants(hostpath.Paths{{}}), "is not absolute"},
		"content without path":           {wants(hostpath.Content{Bytes: []byte("x")}), "is not absolute"},
		"file without content":           {wants(hostpath.Content{Path: "/nowhere"}), "no content is given"},
		"runtime without path":           {func(ctx context.Context) error { return second(cri.Endpoint{Path: "unix://"}.CNI(ctx)) }, "want the absolute path of a unix socket"},
		"loaded without file":            {action(cri.Loaded{}), "no function given that reads the configuration"},
		"addresses of no runtime":        {action(hostlocal.Store{}), "no function given that lists the sandboxes"},
		"maps without path":              {wants(bpfmap.Pinned{}), "no maps given"},
		"bpffs without path":             {func(context.Context) error { return bpffs.EnsureMounted("") }, "no path given"},
		"cgroup without path":            {func(context.Context) error { return cgroup.EnsureMounted("") }, "no path given"},
		"id of no cgroup":                {func(context.Context) error { return second(cgroup.ID("")) }, "no path given"},
		"open no cgroup":                 {func(context.Context) error { return second(cgroup.Open("")) }, "no path given"},
		"zero drop-in":                   {wants(sysctl.DropIn{}), "no name given"},
		"no key":                         {func(context.Context) error { return second(sysctl.Kernel{}.Get("")) }, "not a sysctl key"},
		"bpffs of a nil kernel":          {wants(bpffs.Mount{Path: "/nowhere", Kernel: (*bootstraptest.Kernel)(nil)}), "the kernel is a nil *bootstraptest.Kernel"},
		"cgroup of a nil kernel":         {wants(cgroup.Mount{Path: "/nowhere", Kernel: (*bootstraptest.Kernel)(nil)}), "the kernel is a nil *bootstraptest.Kernel"},
		"values of a nil kernel":         {wants(sysctl.Settings{Values: sysctl.Forwarding(), Kernel: sysctl.Kernel{Files: (*bootstraptest.Kernel)(nil)}}), "the kernel is a nil *bootstraptest.Kernel"},
		"CNI without name":               {wants(cniinstall.Install{Config: cniinstall.Whole("{}")}), "no file name given"},
		"zero CNI agent":                 {wants(cniinstall.Install{Config: cniinstall.Agent{}, ConfDir: "/nowhere", ConfName: "05-x.conflist"}), "no agent plugin given"},
		"zero chained":                   {wants(cniinstall.Install{Config: cniinstall.Chained{}, ConfDir: "/nowhere", ConfName: "05-x.conflist"}), "no agent plugin given"},
		"uninstall by no directory":      {func(context.Context) error { return second(cniinstall.UninstallEnabled("")) }, "no directory of the agent's configuration given"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			err := misuse.call(t.Context())
			require.ErrorContains(t, err, misuse.want)
			require.NotErrorIs(t, err, configresolve.ErrMissing)
			if !strings.HasPrefix(name, "nil functions") { // that is an action without functions
				require.NotErrorIs(t, err, errors.ErrUnsupported)
			}
		})
	}
}
