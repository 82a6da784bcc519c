// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a helper of Cilium's containers is given, given to the command in its place: what is then
// on the node, and the exit status. README.md has it as a table, with what differs.
func TestPLAN10_BesideCiliumsContainers(t *testing.T) {
	t.Parallel()
	const (
		install    = "install-cni --plugins $PLUGINS --cni-conf $CONF"
		hook       = "uninstall-cni --keep-plugins --config-dir /run/config"
		installed  = "nodeinit " + install + "; mkdir /run/config; echo true > /run/config/cni-uninstall"
		host       = "mkdir -p /host/opt/cni/bin /host/etc/cni/net.d; "
		old        = host + "echo old > /host/opt/cni/bin/loopback; echo old > /host/opt/cni/bin/test-cni; chmod 755 /host/opt/cni/bin/*"
		isOld      = "grep -qx old /host/opt/cni/bin/"
		network    = "/etc/cni/net.d/05-cilium.conflist"
		leftovers  = "mkdir -p /run/cilium /var/lib/cilium /etc/cni/net.d /sys/fs/bpf; mount -n -t bpf bpf /sys/fs/bpf; mkdir -p /sys/fs/bpf/cilium; ip link add cilium_host type veth peer name cilium_net; touch /run/cilium/x /etc/cni/net.d/10-x.conflist.cilium_bak"
		allGone    = "test ! -e /run/cilium; test ! -e /var/lib/cilium; test -e /etc/cni/net.d/10-x.conflist; test ! -e /sys/fs/bpf/cilium; test ! -e /sys/class/net/cilium_host"
		bpfGone    = "test ! -e /sys/fs/bpf/cilium; test -e /run/cilium/x; test -e /sys/class/net/cilium_host"
		allThere   = "test -e /sys/fs/bpf/cilium; test -e /run/cilium/x; test -e /sys/class/net/cilium_host"
		resolved   = "test $(cat /run/dest/debug)$(cat /run/dest/mtu) = "
		kubernetes = " --k8s-api-server-urls $SERVER --dest /run/dest"
	)
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		before, env, args string
		code              int
		after             string // a script that succeeds
	}{
		"cilium-mount":                      {"", "", "mount-cgroup /run/cilium/cgroupv2", 0, "grep -q ' /run/cilium/cgroupv2 cgroup2 ' /proc/mounts"},
		"cilium-mount: by environment":      {"", "CGROUP_ROOT=/run/x", "mount-cgroup", 0, "grep -q ' /run/x cgroup2 ' /proc/mounts"},
		"cilium-mount: already mounted":     {"nodeinit mount-cgroup /run/x", "", "mount-cgroup /run/x/", 0, "test $(grep -c ' /run/x cgroup2 ' /proc/mounts) = 1"},
		"cilium-mount: another file system": {"mkdir /run/x; mount -n -t tmpfs x /run/x", "", "mount-cgroup /run/x", 1, "test $(grep -c ' /run/x ' /proc/mounts) = 1"},
		"cilium-mount: an empty path":       {"", "", "mount-cgroup ''", 0, "grep -q ' /run/cilium/cgroupv2 cgroup2 ' /proc/mounts"},

		"cilium-sysctlfix":                      {"mkdir -p /etc/sysctl.d; echo 2 > " + rpFilter, "", "sysctlfix", 0, "grep -qx 0 " + rpFilter + "; grep -Fqx -e '-net.ipv4.conf.lxc*.rp_filter = 0' /etc/sysctl.d/99-zzz-override_cilium.conf"},
		"cilium-sysctlfix: with flags":          {"mkdir /run/d", "", "sysctlfix --sysctl-conf-dir /run/d --sysctl-config-file 50-x.conf --systemd-sysctl-unit x.service", 0, "test -s /run/d/50-x.conf"},
		"cilium-sysctlfix: written, not in use": {"nodeinit sysctlfix; echo 2 > " + rpFilter, "", "sysctlfix", 0, "grep -qx 0 " + rpFilter},
		"cilium-sysctlfix: no directory":        {"", "", "sysctlfix", 0, "test -s /etc/sysctl.d/99-zzz-override_cilium.conf"},
		"cilium-sysctlfix: a file as directory": {"touch /run/d", "", "sysctlfix --sysctl-conf-dir /run/d", 1, "test -f /run/d"},
		"cilium-sysctlfix: no such flag":        {"", "", "sysctlfix --sysctl-file x", 64, "test ! -e /etc/sysctl.d"},

		"install-plugin.sh":                         {old, "HOST_PREFIX=/host", install, 0, "cmp $PLUGINS/test-cni /host/opt/cni/bin/test-cni; " + isOld + "loopback"},
		"install-plugin.sh: by CNI_DIR":             {"mkdir -p /opt/x/bin", "HOST_PREFIX=/host CNI_DIR=/opt/x", install, 0, "test -x /opt/x/bin/test-cni; test -x /opt/x/bin/loopback; test ! -e /host/opt"},
		"install-plugin.sh: over loopback":          {old, "HOST_PREFIX=/host OVERWRITE_LOOPBACK=true", install, 0, "cmp $PLUGINS/loopback /host/opt/cni/bin/loopback"},
		"install-plugin.sh: not over the plugin":    {old, "HOST_PREFIX=/host OVERWRITE_CILIUM=false", "install-cni --plugins $PLUGINS", 0, isOld + "test-cni"},
		"install-plugin.sh: not the configuration":  {host, "HOST_PREFIX=/host CILIUM_CUSTOM_CNI_CONF=true BIN_PATH=/unused", install, 0, "test -x /host/opt/cni/bin/test-cni; test -z \"$(ls /host/etc/cni/net.d)\""},
		"install-plugin.sh: its name":               {host, "HOST_PREFIX=/host CNI_CONF_NAME=10-x.conflist", install, 0, "cmp $CONF /host/etc/cni/net.d/10-x.conflist"},
		"install-plugin.sh: the agent writes it":    {"", "WRITE_CNI_CONF_WHEN_READY=/host" + network, install, 0, "test -x /opt/cni/bin/test-cni; test ! -e /etc/cni"},
		"install-plugin.sh: by its path":            {host, "HOST_PREFIX=/host CILIUM_CNI_CONF=/host/etc/cni/x/07-x.conflist", install, 0, "cmp $CONF /host/etc/cni/x/07-x.conflist; test -x /host/opt/cni/bin/test-cni"},
		"install-plugin.sh: a flag wins":            {host, "HOST_PREFIX=/host CILIUM_CNI_CONF=/host/x/07-x.conflist", install + " --cni-conf-dir /opt/f --cni-conf-name 08-x.conflist", 0, "cmp $CONF /opt/f/08-x.conflist"},
		"install-plugin.sh: no path":                {"", "CILIUM_CNI_CONF=net.d/x.conf", install, 64, "test ! -e /opt/cni"},
		"install-plugin.sh: a directory as path":    {"", "CILIUM_CNI_CONF=/host/etc/cni/net.d/", install, 64, "test ! -e /opt/cni"},
		"install-plugin.sh: where the host entered": {"", "CNI_DIR=/opt/x CNI_CONF_DIR=/opt/y", install + " --host-proc /proc", 0, "test -x /opt/cni/bin/test-cni; test ! -e /opt/x"},

		"cni-uninstall.sh":                       {installed, "", hook, 0, "test ! -e " + network + "; test -x /opt/cni/bin/test-cni"},
		"cni-uninstall.sh: by CNI_CONF_DIR":      {"export CNI_CONF_DIR=/opt/net.d; " + installed, "CNI_CONF_DIR=/opt/net.d", hook, 0, "test ! -e /opt/net.d/05-cilium.conflist; test -x /opt/cni/bin/test-cni"},
		"cni-uninstall.sh: not asked for":        {installed + "; echo True > /run/config/cni-uninstall", "", hook, 0, "test -e " + network},
		"cni-uninstall.sh: no such key":          {installed + "; rm /run/config/cni-uninstall", "", hook, 0, "test -e " + network},
		"cni-uninstall.sh: not our business":     {installed, "CILIUM_CUSTOM_CNI_CONF=true", hook, 0, "test -e " + network},
		"cni-uninstall.sh: the agent's":          {installed + "; mv " + network + " /etc/cni/net.d/06-cilium.conflist", "WRITE_CNI_CONF_WHEN_READY=/host/etc/cni/net.d/06-cilium.conflist", hook, 0, "test ! -e /etc/cni/net.d/06-cilium.conflist"},
		"cni-uninstall.sh: a stranger's":         {installed + "; cp " + network + " /etc/cni/net.d/07-cilium-x.conflist", "", hook, 0, "test -e /etc/cni/net.d/07-cilium-x.conflist"},
		"cni-uninstall.sh: a newer pod's by now": {"export POD_UID=new; " + installed, "POD_UID=old", hook, 0, "test -e " + network},

		"post-uninstall-cleanup":              {leftovers, "", "post-uninstall-cleanup -f --all-state", 0, allGone},
		"post-uninstall-cleanup: BPF alone":   {leftovers, "", "post-uninstall-cleanup -f --bpf-state", 0, bpfGone},
		"post-uninstall-cleanup: unconfirmed": {leftovers, "", "post-uninstall-cleanup --all-state", 1, allThere},
		"post-uninstall-cleanup: no scope":    {leftovers, "", "post-uninstall-cleanup -f", 0, allThere},
		"init-container.sh":                   {leftovers, "CILIUM_ALL_STATE=true", "cleanup -f", 0, allGone},
		"init-container.sh: the older name":   {leftovers, "CLEAN_CILIUM_STATE=true", "cleanup -f", 0, allGone},
		"init-container.sh: BPF alone":        {leftovers, "CILIUM_BPF_STATE=true", "cleanup -f", 0, bpfGone},
		"init-container.sh: its older name":   {leftovers, "CLEAN_CILIUM_BPF_STATE=true", "cleanup -f", 0, bpfGone},
		"init-container.sh: not exactly true": {leftovers, "CILIUM_ALL_STATE=True", "cleanup -f", 0, allThere},
		"build-config":                        {"", "K8S_NODE_NAME=node1 CILIUM_K8S_NAMESPACE=ns1", "build-config" + kubernetes, 0, resolved + "true1500"},
		"build-config: with sources":          {"", "", "build-config --node-name node1 --source config-map:ns1/cilium-config,node:node1" + kubernetes, 0, resolved + "false9000"},
		"build-config: with allowed keys":     {"", "", "build-config --node-name node1 --source config-map:ns1/cilium-config --source node:node1 --allow-config-keys debug" + kubernetes, 0, resolved + "false1500"},
		"build-config: with denied keys":      {"", "", "build-config --node-name node1 --source config-map:ns1/cilium-config --source cilium-node-config:ns1 --deny-config-keys debug" + kubernetes, 0, resolved + "false1500"},
		"build-config: no such ConfigMap":     {"", "", "build-config --source config-map:ns1/none" + kubernetes, 1, "test ! -e /run/dest"},
		"build-config: no such kind":          {"", "", "build-config --source configmap:ns1/x" + kubernetes, 64, "test ! -e /run/dest"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newParallelNode(t)
			helper, _, _ := strings.Cut(name, ": ")
			require.Contains(t, string(readme), "| `"+helper+"` |")
			n.shell("ip link set lo up")
			fill := strings.NewReplacer("$PLUGINS", n.plugins, "$CONF", n.conf, "$SERVER", "http://"+n.serve(&cluster{}), "''", "", "nodeinit ", binary+" ").Replace
			n.shell(fill(c.before))
			n.exitsEnv(c.code, strings.Fields(c.env), strings.Split(fill(c.args), " ")...)
			n.shell(fill(c.after))
		})
	}
}
