// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package installers has the installers of other projects' CNI plugins as their authors would
// write them with our packages: flags and main aside, everything. Its tests run the projects'
// own tables, and what their users have reported.
package installers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cniinstall"
)

// Env has the variables, or flags, of an installer's container, by their names there. Only the
// folders have the same names for all: IMAGE, BIN, CONF, RESULTS and ACCOUNT.
type Env map[string]string

// begin returns what all of them begin with: a kubeconfig with which the plugins act as the
// installer's service account, and the plugins of the image, for the step that comes after it.
func (e Env) begin(agent, kubeconfig string) (*bootstrap.Plan, cniinstall.Install, error) {
	access := hostpath.Kubeconfig{
		Path: kubeconfig, Server: "https://" + net.JoinHostPort(e["KUBERNETES_SERVICE_HOST"], e["KUBERNETES_SERVICE_PORT"]),
		CAFile: cmp.Or(e["KUBE_CA_FILE"], e["ACCOUNT"]+"/ca.crt"), TokenFile: e["ACCOUNT"] + "/token",
	}
	plugins, _, err := cniinstall.OpenPlugins(e["IMAGE"])
	return &bootstrap.Plan{
		Ledger: &ledger.Ledger{Agent: agent, NoOwner: true},
		Steps:  []bootstrap.Step{{Name: "kubeconfig", Prepare: access.Prepare}, {Name: "cni", After: []string{"kubeconfig"}}},
	}, cniinstall.Install{Plugins: plugins, BinDir: e["BIN"], ConfDir: e["CONF"], Needs: []string{kubeconfig}, Undo: cniinstall.Uninstall{Results: e["RESULTS"]}}, err
}

// Istio returns the plan of Istio's node agent.
func Istio(e Env) (*bootstrap.Plan, error) {
	p, i, err := e.begin("istio", e["CNI_AGENT_RUN_DIR"]+"/istio-cni-kubeconfig")
	name, ambient := e["CNI_CONF_NAME"], e["AMBIENT_ENABLED"] == "true"
	file := strings.TrimSuffix(name, filepath.Ext(name)) // .conf or .conflist
	conf := map[string]any{
		"type": "istio-cni", "name": "istio-cni", "cni_agent_run_dir": e["CNI_AGENT_RUN_DIR"],
		"plugin_log_level": e["LOG_LEVEL"], "ambient_enabled": ambient, "pod_namespace": e["POD_NAMESPACE"],
	}
	plugin, _ := json.Marshal(conf)
	switch {
	case e["CHAINED_CNI_PLUGIN"] == "false":
		conf["cniVersion"] = "0.3.1"
		plugin, _ = json.Marshal(conf)
		i.Config, i.ConfName = cniinstall.Whole(plugin), cmp.Or(name, "YYY-istio-cni.conf")
	case ambient && e["ISTIO_OWNED_CNI_CONFIG"] == "true":
		i.Config, i.ConfName = cniinstall.Chained{File: file, Plugin: plugin}, cmp.Or(e["ISTIO_OWNED_CNI_CONFIG_FILENAME"], "02-istio-conf.conflist")
	default:
		i.Config = cniinstall.Chained{File: file, Plugin: plugin, InPlace: true}
	}
	p.Steps[1].Wants = i
	return p, err
}

// Linkerd returns the plan of Linkerd's CNI installer.
func Linkerd(e Env) (*bootstrap.Plan, error) {
	kubeconfig := filepath.Join(e["CONF"], cmp.Or(e["KUBECONFIG_FILE_NAME"], "ZZZ-linkerd-cni-kubeconfig"))
	p, i, err := e.begin("linkerd", kubeconfig)
	file, _ := os.ReadFile(e["CNI_NETWORK_CONFIG_FILE"]) // there need not be one
	plugin := strings.ReplaceAll(cmp.Or(e["CNI_NETWORK_CONFIG"], string(file)), "__KUBECONFIG_FILEPATH__", kubeconfig)
	if plugin == "" {
		err = errors.New("neither CNI_NETWORK_CONFIG nor CNI_NETWORK_CONFIG_FILE has a configuration")
	}
	i.Config = cniinstall.Chained{Plugin: []byte(plugin), InPlace: true}
	p.Steps[1].Wants = i
	return p, err
}

// Multus returns the plan of Multus's thin entrypoint.
func Multus(e Env) (*bootstrap.Plan, error) {
	p, i, err := e.begin("multus", e["CONF"]+"/multus.d/multus.kubeconfig")
	i.Names, i.ConfName = []string{"multus"}, "00-multus"
	p.Steps[1].Wants = i // for what an undoing keeps; the configuration comes with each run
	p.Steps[1].Prepare = func(ctx context.Context) (_ ledger.Wanter, err error) {
		i := i
		i.Config, err = e.delegating(ctx)
		return i, err
	}
	return p, err
}

// delegating is the configuration of Multus, whose plugin calls those of the network that is
// named, or else comes first.
func (e Env) delegating(ctx context.Context) (cniinstall.Whole, error) {
	confs, err := cniinstall.Configs(ctx, e["CONF"])
	for _, c := range confs {
		if named := e["multus-master-cni-file-name"]; c.Err == nil && !strings.HasPrefix(c.File, "00-multus.conf") && (named == "" || named == c.File) {
			return e.multus(c.Raw)
		}
	}
	if err == nil {
		err = fmt.Errorf("%w in %s", cniinstall.ErrTargetMissing, e["CONF"])
	}
	return nil, err
}

func (e Env) multus(network json.RawMessage) (cniinstall.Whole, error) {
	type capable struct{ Capabilities map[string]bool }
	var master struct {
		CNIVersion, Name string
		capable
		Plugins []capable
	}
	if err := json.Unmarshal(network, &master); err != nil {
		return nil, err
	}
	capabilities := map[string]bool{}
	for _, p := range append(master.Plugins, master.capable) {
		maps.Copy(capabilities, p.Capabilities)
	}
	plugin := map[string]any{"type": "multus", "kubeconfig": e["multus-kubeconfig-file-host"], "delegates": []any{network}}
	for key, value := range map[string]any{
		"capabilities": capabilities, "namespaceIsolation": e["namespace-isolation"] == "true", "globalNamespaces": e["global-namespaces"],
		"logLevel": strings.ToLower(e["multus-log-level"]), "logFile": e["multus-log-file"], "binDir": e["additional-bin-dir"],
		"cniConf": e["multus-cni-conf-dir"], "readinessindicatorfile": e["readiness-indicator-file"],
	} {
		if s := fmt.Sprint(value); s != "" && s != "false" && s != "map[]" {
			plugin[key] = value
		}
	}
	if e["multus-log-to-stderr"] == "false" {
		plugin["logToStderr"] = false
	}
	conf := map[string]any{"plugins": []any{plugin}}
	if master.CNIVersion < "1" {
		conf = plugin // as runtimes of that time read it
	}
	conf["cniVersion"], conf["name"] = master.CNIVersion, cmp.Or(map[string]string{"true": master.Name}[e["override-network-name"]], "multus-cni-network")
	return json.Marshal(conf)
}
