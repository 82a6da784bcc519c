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
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cniinstall"
)

// Env has the variables, or flags, of an installer's container, by their names there. Only the
// directories have the same names for all (IMAGE, BIN, CONF, RESULTS, ACCOUNT; Calico's SECOND and
// SECRETS), and what a cloud says of the node has one, PRIMARY_IP.
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

// Calico returns the plan of Calico's installer: the plugins in two directories, of which one that
// is writable is enough, the files that name etcd's, a kubeconfig, and a configuration whole.
func Calico(e Env) (*bootstrap.Plan, error) {
	kubeconfig := e["CONF"] + "/calico-kubeconfig"
	p, i, err := e.begin("calico", kubeconfig)
	conf, values := cmp.Or(e["CNI_NETWORK_CONFIG"], calicoTemplate), []string{"__KUBECONFIG_FILEPATH__", kubeconfig}
	if file := e["CNI_NETWORK_CONFIG_FILE"]; file != "" {
		text, unread := os.ReadFile(file)
		conf, err = string(text), errors.Join(err, unread)
	}
	for name, value := range map[string]string{
		"LOG_LEVEL": "info", "LOG_FILE_PATH": "/var/log/calico/cni/cni.log", "DATASTORE_TYPE": "kubernetes", "KUBERNETES_NODE_NAME": "",
		"CNI_MTU": "1500", "REQUIRE_MTU_FILE": "false", "CALICO_API_GROUP": "crd.projectcalico.org/v1",
	} {
		values = append(values, "__"+name+"__", cmp.Or(e[name], value))
	}
	cni := p.Steps[1]
	for _, etcd := range [][2]string{{"etcd-ca", "CA_CERT"}, {"etcd-cert", "CERT"}, {"etcd-key", "KEY"}} {
		path, used := e["CONF"]+"/calico-tls/"+etcd[0], ""
		content, missing := os.ReadFile(e["SECRETS"] + "/" + etcd[0])
		if missing == nil {
			step := bootstrap.Step{Name: etcd[0], Wants: hostpath.Content{Path: path, Bytes: content, Mode: 0o400, Parents: true, Secret: true}}
			p.Steps, cni.After, i.Needs, used = slices.Insert(p.Steps, 1, step), append(cni.After, step.Name), append(i.Needs, path), path
		} else if !errors.Is(missing, fs.ErrNotExist) {
			err = errors.Join(err, missing)
		}
		values = append(values, "__ETCD_"+etcd[1]+"_FILE__", used)
	}
	if _, none := os.Stat(e["SECOND"]); none == nil {
		i.AlsoBinDirs = []string{e["SECOND"]}
	}
	if e["UPDATE_CNI_BINARIES"] == "false" {
		i.Replace = []string{}
		if _, shut := i.Check(context.Background()); errors.Is(shut, syscall.EROFS) { // the node's image has them
			i.Names, i.Vouched = []string{"calico", "calico-ipam"}, []string{"calico", "portmap", "loopback"}
		}
	}
	i.Config, i.ConfName = cniinstall.Whole(strings.NewReplacer(values...).Replace(conf)), cmp.Or(e["CNI_CONF_NAME"], "10-calico.conflist")
	cni.Wants = i
	p.Steps[len(p.Steps)-1] = cni
	return p, err
}

const calicoTemplate = `{"name": "k8s-pod-network", "cniVersion": "1.0.0", "plugins": [{
  "type": "calico", "log_level": "__LOG_LEVEL__", "log_file_path": "__LOG_FILE_PATH__", "datastore_type": "__DATASTORE_TYPE__",
  "nodename": "__KUBERNETES_NODE_NAME__", "mtu": __CNI_MTU__, "ipam": {"type": "calico-ipam"}, "policy": {"type": "k8s"},
  "kubernetes": {"kubeconfig": "__KUBECONFIG_FILEPATH__"}, "require_mtu_file": __REQUIRE_MTU_FILE__, "calico_api_group": "__CALICO_API_GROUP__"
}, {"type": "portmap", "snat": true, "capabilities": {"portMappings": true}}]}`

// AWS returns the plan of the AWS VPC CNI: the plugins of the image, and the list there with the
// values and plugins that the settings say.
func AWS(e Env) (*bootstrap.Plan, error) {
	p, i, err := e.begin("aws-node", "")
	conf, unread := os.ReadFile(e["IMAGE"] + "/10-aws.conflist")
	v6, egress, least := e["ENABLE_IPv6"] == "true", e["ENABLE_V6_EGRESS"] == "true", 576
	family := []string{"fd00::ac:00/118", "::/0", "/run/cni/v4pd/egress-v6-ipam", "/var/log/aws-routed-eni/egress-v6-plugin.log"}
	if v6 {
		egress, least = e["ENABLE_V4_EGRESS"] != "false", 1280
		family = []string{"169.254.172.0/22", "0.0.0.0/0", "/run/cni/v6pd/egress-v4-ipam", "/var/log/aws-routed-eni/egress-v4-plugin.log"}
	}
	link := cmp.Or(e["AWS_VPC_ENI_MTU"], "9001")
	pod := cmp.Or(e["POD_MTU"], link)
	for _, mtu := range []string{link, pod} {
		if n, invalid := strconv.Atoi(mtu); invalid != nil || n < least || n > 9001 {
			err = errors.Join(err, fmt.Errorf("AWS_VPC_ENI_MTU or POD_MTU is %q, not from %d to 9001", mtu, least))
		}
	}
	node := map[bool]string{true: e["PRIMARY_IP"]}[v6 || egress]
	conf = []byte(strings.NewReplacer(
		"__VETHPREFIX__", cmp.Or(e["AWS_VPC_K8S_CNI_VETHPREFIX"], "eni"), "__MTU__", pod, "__NODEIP__", node, "__EGRESS__", strconv.FormatBool(egress),
		"__MODE__", cmp.Or(e["POD_SECURITY_GROUP_ENFORCING_MODE"], "strict"), "__SNAT__", cmp.Or(e["AWS_VPC_K8S_CNI_RANDOMIZESNAT"], "prng"),
		"__LOG__", cmp.Or(e["AWS_VPC_K8S_PLUGIN_LOG_FILE"], "/var/log/aws-routed-eni/plugin.log"), "__LEVEL__", cmp.Or(e["AWS_VPC_K8S_PLUGIN_LOG_LEVEL"], "Debug"),
		"__SUBNET__", family[0], "__DST__", family[1], "__DATA__", family[2], "__EGRESSLOG__", family[3],
	).Replace(string(conf)))
	for _, more := range [][2]string{
		{"ENABLE_BANDWIDTH_PLUGIN", `{"type": "bandwidth", "capabilities": {"bandwidth": true}}`},
		{"DISABLE_POD_V6", `{"type": "tuning", "sysctl": {"net.ipv6.conf.all.disable_ipv6": "1", "net.ipv6.conf.default.disable_ipv6": "1", "net.ipv6.conf.lo.disable_ipv6": "1"}}`},
	} {
		if e[more[0]] == "true" && unread == nil {
			conf, unread = cniinstall.Chain(conf, []byte(more[1]))
		}
	}
	i.Config, i.ConfName, i.Needs = cniinstall.Whole(conf), "10-aws.conflist", nil
	p.Steps = []bootstrap.Step{{Name: "cni", Wants: i}}
	return p, errors.Join(err, unread)
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
