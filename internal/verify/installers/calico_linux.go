// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package installers

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/cniinstall"
)

const (
	calicoManifest = "manifests/calico.yaml"
	calicoInstall  = "cni-plugin/pkg/install/install.go"
)

// OldCalico returns the objects that the containers install-cni and ebpf-bootstrap leave,
// and the TLS assets of a cluster that keeps its data in etcd.
func OldCalico() Installation {
	i := Installation{
		Agent: "Calico", Release: "3.31.7",
		Dirs: []Dir{
			{binDir, 0o755, calicoManifest + ": cni-bin-dir"},
			{confDir, 0o755, calicoManifest + ": cni-net-dir"},
			{confDir + "/calico-tls", 0o755, calicoInstall + ": TLS assets, mode 0777 less the umask"},
			{"/run/calico", 0o755, calicoManifest + ": var-run-calico"},
			{"/run/calico/cgroup", 0o700, "node/cmd/mountns/main.go"},
			{"/var/lib/calico", 0o755, calicoManifest + ": var-lib-calico"},
			{"/var/log/calico/cni", 0o755, calicoManifest + ": cni-log-dir"},
			{"/run/nodeagent", 0o755, calicoManifest + ": policysync"},
		},
		Files: []File{
			{Path: "/run/xtables.lock", Mode: 0o644, Says: calicoManifest + ": xtables-lock", Missing: true},
			{Path: confDir + "/calico-tls/etcd-ca", Mode: 0o400, Content: "an old ca\n", Says: calicoInstall + ": copyFileAndPermissions"},
			{Path: confDir + "/calico-tls/etcd-cert", Mode: 0o400, Content: "an old certificate\n", Says: calicoInstall},
			{Path: confDir + "/calico-tls/etcd-key", Mode: 0o400, Content: "an old key\n", Says: calicoInstall},
			{Path: confDir + "/calico-kubeconfig", Mode: 0o600, Content: Calico{Token: "stale", CA: "ca"}.Kubeconfig(), Says: calicoInstall + ": writeKubeconfig"},
		},
		Mounts: []Mount{
			{"/sys/fs/bpf", "bpf", "/sys/fs/bpf", "node/pkg/nodeinit/calico-init_linux.go: ensureBPFFilesystem"},
			{"/run/calico/cgroup", "cgroup2", "none", "node/cmd/mountns/main.go"},
		},
	}
	i.Files = append(i.Files, programs(referenceRelease, "cni-plugin/Makefile: build-cni-bins", calicoReference...)...)
	i.Files = append(i.Files, programs("3.31.7", calicoInstall, "calico", "calico-ipam")...)
	conf := calicoConf(CalicoManifestConf, map[string]string{"__KUBERNETES_NODE_NAME__": "my-node", "__CNI_MTU__": "0", "__KUBECONFIG_FILEPATH__": confDir + "/calico-kubeconfig"})
	i.Files = append(i.Files, File{Path: confDir + "/10-calico.conflist", Mode: 0o600, Content: conf, Says: calicoManifest + ": cni_network_config; " + calicoInstall + ": writeCNIConfig"})
	return i
}

var calicoReference = []string{"flannel", "host-local", "loopback", "portmap", "tuning"}

// calicoTemplate is the installer's default.
const calicoTemplate = `{
  "name": "k8s-pod-network",
  "cniVersion": "1.0.0",
  "plugins": [
    {
      "type": "calico",
      "log_level": "__LOG_LEVEL__",
      "log_file_path": "__LOG_FILE_PATH__",
      "datastore_type": "__DATASTORE_TYPE__",
      "nodename": "__KUBERNETES_NODE_NAME__",
      "mtu": __CNI_MTU__,
      "ipam": {"type": "calico-ipam"},
      "policy": {"type": "k8s"},
      "kubernetes": {"kubeconfig": "__KUBECONFIG_FILEPATH__"},
      "require_mtu_file": __REQUIRE_MTU_FILE__,
      "calico_api_group": "__CALICO_API_GROUP__"
    },
    {
      "type": "portmap",
      "snat": true,
      "capabilities": {"portMappings": true}
    }
  ]
}`

// CalicoManifestConf is the template in the manifest's ConfigMap.
const CalicoManifestConf = `{
  "name": "k8s-pod-network",
  "cniVersion": "1.0.0",
  "plugins": [
    {
      "type": "calico",
      "log_level": "info",
      "log_file_path": "/var/log/calico/cni/cni.log",
      "datastore_type": "kubernetes",
      "nodename": "__KUBERNETES_NODE_NAME__",
      "mtu": __CNI_MTU__,
      "ipam": {
          "type": "calico-ipam"
      },
      "policy": {
          "type": "k8s"
      },
      "kubernetes": {
          "kubeconfig": "__KUBECONFIG_FILEPATH__"
      }
    },
    {
      "type": "portmap",
      "snat": true,
      "capabilities": {"portMappings": true}
    }
  ]
}`

// calicoConf is a template with its variables replaced.
func calicoConf(conf string, values map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		conf = strings.ReplaceAll(conf, name, values[name])
	}
	return conf
}

// Calico does the work of Calico's installer with our packages.
type Calico struct {
	Setting
	Token, CA string // the pod's credentials; without a token, the installer does not run in a pod
}

var calicoAssets = []string{"etcd-ca", "etcd-cert", "etcd-key"}

// Plan returns the whole plan: the plugins in the first writable one of two folders, the
// TLS assets, the kubeconfig and, last, the configuration. The caller calls done when the
// plan has run.
func (c Calico) Plan(context.Context) (p *bootstrap.Plan, done func() error, err error) {
	assets, err := readAll(c.image("/calico-secrets"), calicoAssets...)
	if err != nil {
		return nil, nil, err
	}
	config, err := c.config(assets)
	if err != nil {
		return nil, nil, err
	}
	plugins, err := cniinstall.OpenPlugins(c.image(binDir))
	if err != nil {
		return nil, nil, err
	}
	conf := cniinstall.Install{Config: config, ConfDir: c.path(confDir), ConfName: c.env("CNI_CONF_NAME", "10-calico.conflist")}
	install := c.install(plugins, &conf)
	steps := []bootstrap.Step{
		c.paths(
			hostpath.Path{Path: "/run/calico", Type: hostpath.DirectoryOrCreate}, hostpath.Path{Path: "/var/lib/calico", Type: hostpath.DirectoryOrCreate},
			hostpath.Path{Path: "/var/log/calico/cni", Type: hostpath.DirectoryOrCreate}, hostpath.Path{Path: "/run/nodeagent", Type: hostpath.DirectoryOrCreate},
			hostpath.Path{Path: "/run/xtables.lock", Type: hostpath.FileOrCreate},
		),
		{Name: "plugins", Action: install},
	}
	published := bootstrap.Step{Name: "cni", After: []string{"plugins"}, Action: conf}
	for _, name := range slices.Sorted(maps.Keys(assets)) {
		steps = append(steps, bootstrap.Step{Name: name, Action: hostpath.Content{
			Path: c.path(confDir + "/calico-tls/" + name), Bytes: assets[name], Mode: 0o400, Parents: true, Secret: true,
		}})
		published.After = append(published.After, name)
	}
	if c.Token != "" { // the agent renews it
		steps = append(steps, bootstrap.Step{Name: "kubeconfig", Action: hostpath.Content{
			Path: c.path(confDir + "/calico-kubeconfig"), Bytes: []byte(c.Kubeconfig()), Secret: true, Rewritten: true,
		}})
		published.After = append(published.After, "kubeconfig")
	}
	return c.plan("calico", append(steps, published)...), plugins.Close, nil
}

// install installs the plugins: of two folders, one writable folder is enough. If none
// is, and existing plugins are not to be replaced, the node's image has them all, and
// only the agent's own two are required.
func (c Calico) install(plugins fs.FS, published *cniinstall.Install) cniinstall.Install {
	i := cniinstall.Install{Plugins: plugins, Policy: map[string]cniinstall.Policy{"install": cniinstall.Never}, BinDir: c.path(binDir)}
	if c.env("UPDATE_CNI_BINARIES", "true") == "false" {
		i.DefaultPolicy = cniinstall.IfMissing
	}
	i.Policy["loopback"] = i.DefaultPolicy
	for _, name := range strings.Split(c.env("SKIP_CNI_BINARIES", ""), ",") {
		i.Policy[name] = cniinstall.Never
	}
	writable := unix.Access(i.BinDir, unix.W_OK) == nil
	if second := c.path("/secondary-bin-dir"); unix.Access(second, unix.F_OK) == nil {
		i.AlsoBinDirs = []string{second}
		writable = writable || unix.Access(second, unix.W_OK) == nil
	}
	if !writable && i.DefaultPolicy == cniinstall.IfMissing {
		i.Names = []string{"calico", "calico-ipam"}
		published.Elsewhere = []string{"calico", "portmap", "loopback"}
	}
	published.BinDir, published.SearchDirs = i.BinDir, i.AlsoBinDirs
	return i
}

// config returns the user's template, or the default, with its variables replaced.
func (c Calico) config(assets map[string][]byte) (cniinstall.Whole, error) {
	values := map[string]string{
		"__LOG_LEVEL__": c.env("LOG_LEVEL", "info"), "__LOG_FILE_PATH__": c.env("LOG_FILE_PATH", "/var/log/calico/cni/cni.log"),
		"__DATASTORE_TYPE__": c.env("DATASTORE_TYPE", "kubernetes"), "__KUBERNETES_NODE_NAME__": c.env("KUBERNETES_NODE_NAME", ""),
		"__KUBECONFIG_FILEPATH__": confDir + "/calico-kubeconfig", "__CNI_MTU__": c.env("CNI_MTU", "1500"),
		"__REQUIRE_MTU_FILE__": c.env("REQUIRE_MTU_FILE", "false"), "__CALICO_API_GROUP__": c.env("CALICO_API_GROUP", "crd.projectcalico.org/v1"),
		"__ETCD_CA_CERT_FILE__": "", "__ETCD_CERT_FILE__": "", "__ETCD_KEY_FILE__": "",
	}
	for asset, name := range map[string]string{"etcd-ca": "__ETCD_CA_CERT_FILE__", "etcd-cert": "__ETCD_CERT_FILE__", "etcd-key": "__ETCD_KEY_FILE__"} {
		if assets[asset] != nil {
			values[name] = confDir + "/calico-tls/" + asset
		}
	}
	conf := c.env("CNI_NETWORK_CONFIG", calicoTemplate)
	if file := c.env("CNI_NETWORK_CONFIG_FILE", ""); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		conf = string(text)
	}
	if conf = calicoConf(conf, values); !json.Valid([]byte(conf)) {
		return nil, errors.New("the network's configuration is not JSON") // it may have credentials, and is not shown
	}
	return cniinstall.Whole(conf), nil
}

// Kubeconfig returns the plugin's access to the API server.
func (c Calico) Kubeconfig() string {
	trust := "certificate-authority-data: " + base64.StdEncoding.EncodeToString([]byte(c.CA))
	if c.env("SKIP_TLS_VERIFY", "") == "true" {
		trust = "insecure-skip-tls-verify: true"
	}
	protocol := c.env("KUBERNETES_SERVICE_PROTOCOL", "")
	if protocol == "" {
		protocol = "https"
	}
	return fmt.Sprintf(calicoKubeconfig, protocol, net.JoinHostPort(c.env("KUBERNETES_SERVICE_HOST", ""), c.env("KUBERNETES_SERVICE_PORT", "")), trust, c.Token)
}

const calicoKubeconfig = `# Kubeconfig file for Calico CNI plugin.
apiVersion: v1
kind: Config
clusters:
- name: local
  cluster:
    server: %s://%s
    %s
users:
- name: calico
  user:
    token: %s
contexts:
- name: calico-context
  context:
    cluster: local
    user: calico
current-context: calico-context
`

// NewCalicoImage returns the files of the release that uses our packages.
func NewCalicoImage() []File {
	files := append(programs(referenceRelease, "", calicoReference...), programs("new", "", "calico", "calico-ipam", "install")...)
	return append(files,
		File{Path: "/calico-secrets/etcd-ca", Mode: 0o400, Content: "an old ca\n"}, // not renewed with the certificate
		File{Path: "/calico-secrets/etcd-cert", Mode: 0o400, Content: "a new certificate\n"},
		File{Path: "/calico-secrets/etcd-key", Mode: 0o400, Content: "a new key\n"})
}
