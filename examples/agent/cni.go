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
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	auto     = "auto" // the container runtime reports the directory
)

type cniFlags struct {
	plugin, subnet                                 string
	plugins, binDir, confDir, dataDir, runtimePath string
	waitLoaded                                     time.Duration
}

func (c *cniFlags) flags(f *flag.FlagSet) {
	f.StringVar(&c.plugin, "cni", "", "the plugin that connects pods, with host-local: ptp or bridge; empty: no CNI configuration")
	f.StringVar(&c.subnet, "subnet", "", "the addresses of this node's pods, such as 10.244.1.0/24, or with a comma one of each family; empty: the Node's podCIDRs")
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
	if c.confDir == "" || c.binDir == "" {
		return errors.New("--cni-bin-dir and --cni-conf-dir must be directories, or auto")
	}
	if c.subnet == "" {
		return nil
	}
	_, err := c.conflist()
	return err
}

// conflist is this node's network configuration.
func (c *cniFlags) conflist() (cniinstall.Whole, error) {
	type object = map[string]any
	var ranges [][]object
	var routes []object
	for subnet := range strings.SplitSeq(c.subnet, ",") {
		everywhere := "0.0.0.0/0"
		if prefix, err := netip.ParsePrefix(subnet); err != nil {
			return nil, fmt.Errorf("the addresses of this node's pods: %w", err)
		} else if prefix.Addr().Is6() {
			everywhere = "::/0"
		}
		ranges, routes = append(ranges, []object{{"subnet": subnet}}), append(routes, object{"dst": everywhere})
	}
	main := object{"type": c.plugin, "ipMasq": true, "ipam": object{
		"type": "host-local", "dataDir": c.dataDir, "ranges": ranges, "routes": routes,
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
	install := cniinstall.Install{
		BinDir: directory(a.cni.binDir), ConfDir: directory(a.cni.confDir), ConfName: confName,
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
			if err := a.allot(ctx); err != nil {
				return nil, err
			}
			conflist, err := a.cni.conflist()
			install.Config = conflist
			install.Runtime, install.RuntimeErr = a.runtime().CNI(ctx)
			return install, err
		}},
	}
	if a.cni.waitLoaded > 0 {
		steps = append(steps, bootstrap.Step{Name: "cni-loaded", After: []string{stepCNI}, Timeout: a.cni.waitLoaded, Action: cri.Loaded{
			Endpoint: a.runtime(),
			Conf:     func(context.Context) ([]byte, error) { return a.cni.conflist() },
		}})
	}
	return steps, closePlugins, nil
}

// allot takes the addresses of this node's pods from its Node, unless a flag has them. They are
// different on each node, and stay the same.
func (a *agent) allot(ctx context.Context) error {
	if a.cni.subnet != "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	node, err := a.clients.dynamic.Resource(nodes).Get(ctx, a.cluster.node, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the podCIDRs of the node %s: %w", a.cluster.node, err)
	}
	cidrs, _, err := unstructured.NestedStringSlice(node.Object, "spec", "podCIDRs")
	if err == nil && len(cidrs) == 0 {
		err = errors.New("have kube-controller-manager give it some (--allocate-node-cidrs and --cluster-cidr), or give this node's own by --subnet")
	}
	if err != nil {
		return fmt.Errorf("the node %s has no podCIDRs: %w", a.cluster.node, err)
	}
	a.cni.subnet = strings.Join(cidrs, ",")
	return nil
}

// directory is the value of a flag; empty lets the runtime decide.
func directory(flag string) string {
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
