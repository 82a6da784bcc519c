// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The step preflight reports each known later failure in a line with its code, and does not
// change the exit status.
func TestRDY7_CheckWarnsOfWhatFailsLater(t *testing.T) {
	n := newParallelNode(t)
	require.NoError(t, os.WriteFile(n.source, []byte("kube-proxy-replacement: \"true\"\n"), 0o644))
	check := []string{"check", "--only", "config,preflight", "--source", "file:" + n.source, "--dest", "/run/agent-config"}
	n.ok(append([]string{"apply"}, append(check[3:], "--only", "config")...)...)

	o := n.ok(check...)
	require.NotContains(t, o.stdout, "(preflight.table-in-use)")
	require.NotContains(t, o.stdout, "(preflight.networkd)")

	n.shell(`ip rule add pref 100 from 10.7.0.0/16 lookup 2005
mkdir -p /etc/cni/net.d /etc/systemd/system
ln -s /dev/null /etc/systemd/system/dbus-org.freedesktop.network1.service
echo '{"name":"torn","plugins":[' >/etc/cni/net.d/00-torn.conflist`)
	environment := []string{"KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_PORT_443_TCP_ADDR=10.96.0.1"}
	want := map[string]string{
		"routing":    `routing: .* ip rule IPv4 100: from 10\.7\.0\.0/16 lookup 2005.* \(give these another .*\) \(preflight\.table-in-use\)`,
		"networkd":   `networkd: .*\(set ManageForeignRoutes=no.*\) \(preflight\.networkd\)`,
		"api-server": `api-server: .* at 10\.96\.0\.1, .* \(give it .*\) \(preflight\.service-address\)`,
		"cni":        `cni: /etc/cni/net\.d/00-torn\.conflist is invalid and sorts before 05-cilium\.conflist.* \(move it away, .*\) \(cni\.preceded\)`,
	}
	o = n.okEnv(environment, check...)
	for _, line := range want {
		require.Regexp(t, line, o.stdout)
	}
	o = n.okEnv(environment, append(check, "--ignore-preflight", "networkd,cni")...)
	for name, line := range want {
		require.Equal(t, name == "networkd" || name == "cni", !regexp.MustCompile(line).MatchString(o.stdout), name)
	}
	o = n.run(append(check, "--output", "json")...)
	require.Contains(t, o.stdout, "(preflight.networkd)")
}

// The server of a kubeconfig counts as those of the flags do, and before the environment.
func TestRDY8_CheckLooksAtTheServerOfAKubeconfig(t *testing.T) {
	n := newParallelNode(t)
	require.NoError(t, os.WriteFile(n.source, []byte("kube-proxy-replacement: \"true\"\n"), 0o644))
	kubeconfig := filepath.Join(n.work, "kubeconfig")
	environment := []string{"KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_PORT_443_TCP_ADDR=10.96.0.1"}
	check := func(more ...string) string {
		o := n.exitsEnv(2, environment, append([]string{"check", "--source", "file:" + n.source, "--k8s-kubeconfig-path", kubeconfig}, more...)...)
		return o.stdout
	}
	write := func(server string) {
		require.NoError(t, os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a}}]\nclusters: [{name: a, cluster: {server: '"+server+"'}}]\n"), 0o600))
	}
	write("https://10.96.0.1:443")
	require.Regexp(t, `api-server: .* at https://10\.96\.0\.1:443, .* \(preflight\.service-address\)`, check())
	write("https://10.0.0.7:6443")
	require.NotContains(t, check(), "api-server: ")
	require.NoError(t, os.WriteFile(n.source, []byte("kube-proxy-replacement: \"true\"\nk8s-api-server: https://10.96.0.1\n"), 0o644))
	require.Contains(t, check(), "preflight.service-address", "the agent's own configuration comes first")

	require.NoError(t, os.WriteFile(n.source, []byte("kube-proxy-replacement: \"true\"\n"), 0o644))
	require.NoError(t, os.Remove(kubeconfig))
	require.Contains(t, check(), "api-server: cannot be looked at: kubeconfig "+kubeconfig+": ")
	require.NotContains(t, check("--ignore-preflight", "api-server"), "api-server: ")
}
