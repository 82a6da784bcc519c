// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"time"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/bootstrap/hostlocal"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cniinstall"
)

const (
	stepCNI  = "cni"
	network  = "slipway-agent" // of the network, and of host-local's store
	confName = "10-slipway-agent.conflist"
	auto     = "auto" // the container runtime reports the folder
)

type cniFlags struct {
	plugin, subnet                                 string
	plugins, binDir, confDir, dataDir, runtimePath string
	waitLoaded                                     time.Duration
}

func (c *cniFlags) flags(f *flag.FlagSet) {
	f.StringVar(&c.plugin, "cni", "", "the plugin that connects pods, with host-local: ptp or bridge; empty: no CNI configuration")
	f.StringVar(&c.subnet, "subnet", "", "the addresses of this node's pods, such as 10.244.1.0/24")
	f.StringVar(&c.plugins, "plugins", "", "directory with the CNI plugins to install; empty: the node has them")
	f.StringVar(&c.binDir, "cni-bin-dir", auto, "directory of CNI plugins, on the host; auto: the container runtime's, or /opt/cni/bin if it reports none")
	f.StringVar(&c.confDir, "cni-conf-dir", auto, "directory of CNI configurations, on the host; auto: the container runtime's, or /etc/cni/net.d if it reports none")
	f.StringVar(&c.dataDir, "cni-data-dir", "/var/lib/cni/networks", "host-local's store, on the host")
	f.StringVar(&c.runtimePath, "runtime-endpoint", "", "socket of the container runtime, on the host; empty: search for it")
	f.DurationVar(&c.waitLoaded, "wait-loaded", 0, "how long to wait until the container runtime has loaded the configuration; 0: do not")
}

func (c *cniFlags) validate() error {
	switch c.plugin {
	case "":
		return nil
	case "ptp", "bridge":
	default:
		return fmt.Errorf("--cni %q: want ptp or bridge", c.plugin)
	}
	if _, err := netip.ParsePrefix(c.subnet); err != nil {
		return fmt.Errorf("--subnet: %w", err)
	}
	if c.confDir == "" || c.binDir == "" {
		return errors.New("--cni-bin-dir and --cni-conf-dir must be directories, or auto")
	}
	return nil
}

// conflist is this node's network configuration.
func (c *cniFlags) conflist() (cniinstall.Whole, error) {
	everywhere := "0.0.0.0/0"
	if subnet, err := netip.ParsePrefix(c.subnet); err != nil {
		return nil, err
	} else if subnet.Addr().Is6() {
		everywhere = "::/0"
	}
	type object = map[string]any
	main := object{"type": c.plugin, "ipMasq": true, "ipam": object{
		"type": "host-local", "dataDir": c.dataDir,
		"ranges": [][]object{{{"subnet": c.subnet}}}, "routes": []object{{"dst": everywhere}},
	}}
	if c.plugin == "bridge" {
		main["bridge"], main["isGateway"] = "slipway0", true
	}
	portmap := object{"type": "portmap", "capabilities": object{"portMappings": true}}
	return json.Marshal(object{"cniVersion": "1.0.0", "name": network, "plugins": []object{main, portmap}})
}

// cniSteps come after everything that prepares the node, so the configuration is published only
// on a healthy one. Leaked addresses are released before a pod can ask for one.
func (a *agent) cniSteps() (steps []bootstrap.Step, closePlugins func(), err error) {
	if a.cni.plugin == "" {
		return nil, func() {}, nil
	}
	conflist, err := a.cni.conflist()
	if err != nil {
		return nil, nil, err
	}
	install := cniinstall.Install{
		BinDir: folder(a.cni.binDir), ConfDir: folder(a.cni.confDir), ConfName: confName, Config: conflist,
		Names: []string{a.cni.plugin, "host-local", "portmap", "loopback"}, Undo: cniinstall.Uninstall{Sandboxes: a.sandboxes},
		Remedy: "give --runtime-endpoint, or --cni-bin-dir and --cni-conf-dir",
	}
	closePlugins = func() {}
	if a.cni.plugins != "" {
		plugins, closeAll, err := cniinstall.OpenPlugins(a.cni.plugins)
		if err != nil {
			return nil, nil, fmt.Errorf("--plugins: %w", err)
		}
		install.Plugins, closePlugins = plugins, func() { _ = closeAll() } // it was only read
	}
	steps = []bootstrap.Step{
		{Name: "addresses", Optional: true, Action: hostlocal.Store{
			Network: network, DataDir: a.cni.dataDir, Enter: a.host.Do, Sandboxes: a.sandboxes,
		}},
		{Name: stepCNI, After: a.base(), Wants: install, Prepare: func(ctx context.Context) (ledger.Wanter, error) {
			install.Runtime, install.RuntimeErr = a.runtime().CNI(ctx)
			return install, nil
		}},
	}
	if a.cni.waitLoaded > 0 {
		steps = append(steps, bootstrap.Step{Name: "cni-loaded", After: []string{stepCNI}, Timeout: a.cni.waitLoaded, Action: cri.Loaded{
			Endpoint: a.runtime(),
			Conf:     func(context.Context) ([]byte, error) { return conflist, nil },
		}})
	}
	return steps, closePlugins, nil
}

// folder is the value of a flag; empty lets the runtime decide.
func folder(flag string) string {
	if flag == auto {
		return ""
	}
	return flag
}

// runtime is the container runtime, which is searched for unless a flag names it.
func (a *agent) runtime() cri.Endpoint {
	return cri.Endpoint{HostProc: a.host.Proc, Path: a.cni.runtimePath}
}

// sandboxes asks the container runtime for its sandboxes.
func (a *agent) sandboxes(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return a.runtime().SandboxIDs(ctx)
}
