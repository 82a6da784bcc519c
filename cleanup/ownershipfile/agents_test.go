// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ownershipfile_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/cleanup/ownershipfile"
)

// The objects that nine agents own, according to their manifests and sources, are accepted
// under the agent's own name; under another agent's name, or none, each is refused.
func TestSEC9_OwnershipsOfRealAgents(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 5)
	owned := map[string]cleanup.Ownership{"cilium": cleanup.Cilium()}
	for _, name := range []string{"calico", "kube-proxy", "ip-masq-agent"} {
		files = append(files, "../../examples/ownership/"+name+".yaml")
	}
	for _, name := range files {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		own, err := ownershipfile.Parse(content)
		require.NoError(t, err, name)
		require.Equal(t, strings.TrimSuffix(filepath.Base(name), ".yaml"), own.Agent)
		owned[own.Agent] = own
	}
	require.Len(t, owned, 9)
	for agent, own := range owned {
		for other := range owned {
			if own.Agent = other; other != agent {
				require.ErrorContains(t, own.Validate(), "cleanup: ownership: ", "%s's, for %s", agent, other)
			}
		}
		own.Agent = ""
		require.ErrorContains(t, own.Validate(), ", which is "+agent+"'s (see ", agent)
	}
}

// Each of these would own an object of the node, of Kubernetes, of a container runtime, of a
// firewall or of another agent: under an unknown agent's name each is refused, and the error
// names the field.
func TestSEC9_AnOwnershipOfTheNodesOrOthersObjectsIsRefused(t *testing.T) {
	things := map[string][]string{
		"files": {
			"/etc/passwd", "/etc/shadow", "/etc/kubernetes/kubelet.conf", "/etc/kubernetes/pki/ca.key", "/bin/sh", "/usr/bin/nsenter", "/etc/ssh/sshd_config",
			"/etc/resolv.conf", "/etc/hosts", "/boot/vmlinuz", "/root/.ssh/authorized_keys", "/etc/systemd/system/kubelet.service", "/etc/sysctl.conf",
			"/etc/sysctl.d/99-sysctl.conf", "/etc/cni/net.d/10-calico.conflist", "/etc/cni/net.d/10-flannel.conflist", "/opt/cni/bin/loopback", "/opt/cni/bin/bridge",
			"/opt/cni/bin/calico", "/var/lib/kubelet/config.yaml", "/var/lib/etcd/member/snap/db", "/proc/sys/net/ipv4/ip_forward", "/run/containerd/containerd.sock",
			"/etc/cni/net.d", "/home/user/file",
		},
		"stateDirs": {
			"/etc/kubernetes/pki", "/var/lib/etcd", "/var/lib/etcd/member", "/var/lib/rancher", "/var/lib/rancher/k3s", "/var/lib/kubelet", "/var/lib/containerd",
			"/var/lib/docker", "/var/lib/calico", "/run/flannel", "/var/lib/weave", "/var/run/cilium", "/run/systemd", "/var/lib/cni", "/var/lib/cni/networks",
			"/opt/cni/bin", "/sys/fs/bpf/cilium", "/srv/data",
		},
		"links":         {"docker0", "cni0", "veth.*", "eth0", "lo", "en.*", "br-[0-9a-f]+", "kube-ipvs0", "cali.*", "flannel.1", "weave", "virbr0", "tunl0"},
		"chainPrefixes": {"KUBE-", "K", "D", "DOCKER", "CNI-", "CILIUM_", "cali-", "ufw", "f2b-", "KUBE-ROUTER-", "IN", "FWD", "NETAVARK", "LIBVIRT_", "ISTIO_"},
		"ruleComments":  {"AWS, CONNMARK", "AWS, *", "A*", "AWS?x", "k[a-z]*", "kubernetes service portals", "cali:x", "cilium-feeder: x", "kube-router netpol"},
		"ipsetPrefixes": {"KUBE-", "cali40", "f2b-", "weave-"},
		"pins":          {"cilium", "calico", "tc/globals/cilium_*", "systemd"},
		"programs":      {"cil_from_netdev", "cali_tc_main", "sd_fw_ingress"},
	}
	count := 0
	for field, values := range things {
		for _, value := range values {
			yaml := "agent: acme\n" + field + ": ['" + value + "']\n"
			if field == "links" {
				yaml = "agent: acme\nlinks: [{name: '" + value + "'}]\n"
			}
			_, err := ownershipfile.Parse([]byte(yaml))
			require.ErrorContains(t, err, "cleanup: ownership: "+field+": ", "%s: %s", field, value)
			require.ErrorContains(t, err, value)
			if strings.Contains(err.Error(), "give its name as agent") {
				none := slices.Contains([]string{"programs", "pins", "ruleComments"}, field)
				require.Equal(t, !none, strings.Contains(err.Error(), "in exceptions"), "exceptions are advised where they exist: %s", err)
			}
			count++
		}
	}
	require.GreaterOrEqual(t, count, 60)
}

// An exception allows one object of another agent, and none of the node's.
func TestSEC9_Exceptions(t *testing.T) {
	for exception, refused := range map[string]string{
		"{kind: link, name: cni0}":                               "",
		"{kind: chain, name: KUBE-ROUTER-INPUT}":                 "",
		"{kind: ipset, name: weave-abc}":                         "",
		"{kind: file, name: /etc/cni/net.d/10-calico.conflist}":  "",
		"{kind: directory, name: /srv/acme}":                     "",
		"{kind: directory, name: /var/lib/cni/networks/cbr0}":    "",
		"{kind: link, name: eth0}":                               "the node's",
		"{kind: chain, name: FORWARD}":                           "the node's",
		"{kind: file, name: /etc/passwd}":                        "the node's",
		"{kind: directory, name: /var/lib/etcd}":                 "the node's",
		"{kind: directory, name: /var/lib/kubelet/pods}":         "the node's",
		"{kind: directory, name: /srv}":                          "a directory at the root",
		"{kind: directory, name: /etc/cni/../kubernetes}":        "want a path without ..",
		"{kind: files, name: /etc/cni/net.d/10-calico.conflist}": "want the kind link, chain",
		"{kind: link, name: ''}":                                 "needs a name",
	} {
		_, err := ownershipfile.Parse([]byte("agent: acme\nexceptions: [" + exception + "]\n"))
		if refused == "" {
			require.NoError(t, err, exception)
			continue
		}
		require.ErrorContains(t, err, refused, exception)
	}
}
