// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/sysctl"
)

// kernel is the part of a kernel that the agent needs; nil means the running one.
type kernel interface {
	bpffs.Mounter
	sysctl.Files
}

// agent is what acme's agent needs on a node.
type agent struct {
	root     string // of the node's files; empty: /
	kernel   kernel
	host     host
	plugins  fs.FS
	environ  []string
	owner    string
	anyOwner bool
	node     *journal.Node
}

// settings are the agent's configuration.
type settings struct {
	Network    string `config:"network,required"` // the network to join
	MTU        int    `config:"mtu" default:"1500"`
	RPFilter   string `config:"reverse-path-filter" default:"0"`
	Forwarding bool   `config:"forwarding" default:"true"`
	Hostname   string `config:"hostname" default:"acme-node"`
}

func (a agent) path(p string) string { return filepath.Join(a.root, p) }

func (a agent) values() sysctl.Kernel { return sysctl.Kernel{Files: a.kernel} }

// remembering returns a with the journal of its changes to the node, which all plans of
// this process share.
func (a agent) remembering() agent {
	a.node = &journal.Node{Dir: a.path("/var/lib/acme"), Agent: "acme", Owner: a.owner, NoOwner: a.owner == "", AnyOwner: a.anyOwner, Handlers: []journal.Handler{
		hostpath.Handler{}, cgroup.Handler{Kernel: a.kernel}, bpffs.Handler{Kernel: a.kernel}, sysctl.Handler{Kernel: a.values()},
		cniinstall.Handler{ConfDir: a.path("/etc/cni/net.d")}, configdir.Handler{},
		identityFiles(a.path("/etc/acme/identity.json")), hostnames{a.host},
	}}
	return a
}

// machine is the node: this machine, with a lock of the agent's own.
func (a agent) machine() hostns.Host {
	return hostns.Host{Here: a.root != "", LockFile: a.path("/run/acme.lock"), LockTimeout: 10 * time.Second}
}

// resolve reads the cluster's configuration, which is a mounted ConfigMap, the node's
// own, which must not move it into another network, and the environment.
func (a agent) resolve(ctx context.Context) (s settings, config *configresolve.Config, err error) {
	specs, err := configresolve.ParseSpecs([]string{"dir:" + a.path("/etc/acme/config"), "env:ACME_"}, configresolve.SpecDefaults{})
	if err != nil {
		return s, nil, err
	}
	cluster, err := specs[0].Source(nil)
	if err != nil {
		return s, nil, err
	}
	environment, err := specs[1].Source(a.environ)
	if err != nil {
		return s, nil, err
	}
	node := configresolve.Optional(configresolve.Dir{Path: a.path("/etc/acme/node")})
	resolver := configresolve.Resolver{Sources: []configresolve.Source{cluster, node, environment}, DenyKeys: []string{"network"}}
	if config, err = resolver.Resolve(ctx); err != nil {
		return s, nil, err
	}
	return s, config, configresolve.Decode(config, &s)
}

func (a agent) plan() *bootstrap.Plan {
	return &bootstrap.Plan{
		Host:    a.machine(),
		Journal: a.node,
		Prepare: a.prepare,
		Steps: []bootstrap.Step{
			{Name: "config"},
			{Name: "paths", Action: hostpath.Paths{List: []hostpath.Path{
				{Path: a.path("/etc/cni/net.d"), Type: hostpath.Directory},
				{Path: a.path("/run/acme/state"), Type: hostpath.DirectoryOrCreate},
				{Path: a.path("/run/acme/lock"), Type: hostpath.FileOrCreate},
			}}},
			{Name: "cgroup", Action: cgroup.Mount{Path: a.path("/run/acme/cgroup"), Kernel: a.kernel}},
			{Name: "bpffs", Action: bpffs.Mount{Path: a.path("/run/acme/bpf"), Kernel: a.kernel}},
			{Name: "sysctl"},
			{Name: "forwarding", After: []string{"sysctl"}},
			{Name: "hostname"},
			{Name: "identity"},
			{Name: "cni", After: []string{"bpffs", "cgroup"}},
		},
	}
}

// prepare sets the steps' fields from the configuration.
func (a agent) prepare(ctx context.Context, p *bootstrap.Plan) error {
	s, config, err := a.resolve(ctx)
	if err != nil {
		return &bootstrap.StepError{Step: "config", Op: "resolve", Err: err}
	}
	p.Step("config").Action = configdir.Writer{Path: a.path("/etc/acme/resolved"), Config: config}
	p.Step("sysctl").Action = sysctl.DropIn{
		Dir: a.path("/etc/sysctl.d"), Name: "90-acme.conf", Kernel: a.values(), Settings: []sysctl.Setting{{Key: "net.ipv4.conf.all.rp_filter", Value: s.RPFilter}},
	}
	p.Step("forwarding").Action = sysctl.Settings{Values: sysctl.Forwarding(), Kernel: a.values()}
	p.Step("forwarding").Absent = !s.Forwarding
	p.Step("hostname").Action = hostname{name: s.Hostname, host: a.host}
	p.Step("identity").Action = identity{
		path: a.path("/etc/acme/identity.json"), content: fmt.Appendf(nil, "{\"mtu\": %d}\n", s.MTU),
	}
	p.Step("cni").Action, err = a.install(s)
	return err
}

func (a agent) install(s settings) (cniinstall.Install, error) {
	plugin, err := json.Marshal(map[string]any{"type": "acme-cni", "mtu": s.MTU})
	return cniinstall.Install{
		Plugins: a.plugins, Optional: []string{"loopback"}, BinDir: a.path("/opt/cni/bin"),
		Config:  cniinstall.Chained{Target: s.Network, Plugin: plugin},
		ConfDir: a.path("/etc/cni/net.d"), ConfName: "05-acme.conflist", Exclusive: true,
	}, err
}
