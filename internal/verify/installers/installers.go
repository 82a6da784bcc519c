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

// access is the kubeconfig with which plugins act as the installer's service account.
func (e Env) access(path string) hostpath.Kubeconfig {
	return hostpath.Kubeconfig{
		Path:      path,
		Server:    cmp.Or(e["KUBERNETES_SERVICE_PROTOCOL"], "https") + "://" + net.JoinHostPort(e["KUBERNETES_SERVICE_HOST"], e["KUBERNETES_SERVICE_PORT"]),
		CAFile:    cmp.Or(e["KUBE_CA_FILE"], e["ACCOUNT"]+"/ca.crt"),
		TokenFile: e["ACCOUNT"] + "/token",
	}
}

// install installs the image's plugins, which need the kubeconfig.
func (e Env) install(access hostpath.Kubeconfig) (cniinstall.Install, error) {
	plugins, _, err := cniinstall.OpenPlugins(e["IMAGE"])
	return cniinstall.Install{
		Plugins: plugins, BinDir: e["BIN"], ConfDir: e["CONF"], Needs: []string{access.Path}, Undo: cniinstall.Uninstall{Results: e["RESULTS"]},
	}, err
}

// plan makes the kubeconfig, and then what needs it.
func plan(agent string, access hostpath.Kubeconfig, cni bootstrap.Step) *bootstrap.Plan {
	cni.Name, cni.After = "cni", []string{"kubeconfig"}
	return &bootstrap.Plan{
		Ledger: &ledger.Ledger{Agent: agent, NoOwner: true, Adopt: true},
		Steps:  []bootstrap.Step{{Name: "kubeconfig", Prepare: access.Prepare}, cni},
	}
}

// Istio returns the plan of Istio's node agent.
func Istio(e Env) (*bootstrap.Plan, error) {
	access := e.access(e["CNI_AGENT_RUN_DIR"] + "/istio-cni-kubeconfig")
	i, err := e.install(access)
	if err != nil {
		return nil, err
	}
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
	return plan("istio", access, bootstrap.Step{Wants: i}), nil
}

// Linkerd returns the plan of Linkerd's CNI installer.
func Linkerd(e Env) (*bootstrap.Plan, error) {
	access := e.access(filepath.Join(e["CONF"], cmp.Or(e["KUBECONFIG_FILE_NAME"], "ZZZ-linkerd-cni-kubeconfig")))
	i, err := e.install(access)
	file, _ := os.ReadFile(e["CNI_NETWORK_CONFIG_FILE"]) // there need not be one
	plugin := strings.ReplaceAll(cmp.Or(e["CNI_NETWORK_CONFIG"], string(file)), "__KUBECONFIG_FILEPATH__", access.Path)
	if plugin == "" {
		err = errors.New("neither CNI_NETWORK_CONFIG nor CNI_NETWORK_CONFIG_FILE has a configuration")
	}
	i.Config = cniinstall.Chained{Plugin: []byte(plugin), InPlace: true}
	return plan("linkerd", access, bootstrap.Step{Wants: i}), err
}

// Multus returns the plan of Multus's thin entrypoint.
func Multus(e Env) (*bootstrap.Plan, error) {
	access := e.access(e["CONF"] + "/multus.d/multus.kubeconfig")
	i, err := e.install(access)
	i.Names, i.ConfName = []string{"multus"}, "00-multus"
	return plan("multus", access, bootstrap.Step{Wants: i, Prepare: func(ctx context.Context) (_ ledger.Wanter, err error) {
		i := i
		i.Config, err = e.delegating(ctx)
		return i, err
	}}), err
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
	conf["cniVersion"], conf["name"] = master.CNIVersion, "multus-cni-network"
	if e["override-network-name"] == "true" {
		conf["name"] = master.Name
	}
	return json.Marshal(conf)
}
