// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/testns"
)

// A managed cloud has a plugin of its own, which connects pods; an agent is chained
// onto it, by a whole configuration that is a key of a ConfigMap. The stand-ins are
// real plugins under other names: bridge is the provider's, and tuning, which writes
// a value that a pod can read, is the agent's.
func TestCNI3_AnAgentChainedOntoAManagedCloudsPlugin(t *testing.T) {
	testns.SkipShort(t, "half a minute")
	begin(t)
	const own, chained = "/etc/cni/net.d/00-provider.conflist", "/etc/cni/net.d/05-agent.conflist"
	provider := object{
		"type": "provider-eni", "bridge": "eni0", "isGateway": true, "ipMasq": true,
		"ipam": object{"type": "host-local", "ranges": []any{[]any{object{"subnet": "10.244.7.0/24"}}}, "routes": []any{object{"dst": "0.0.0.0/0"}}},
	}
	agents := object{"type": "agent-cni", "chaining-mode": "generic-veth", "sysctl": object{"net.core.somaxconn": "501"}}
	for name, as := range map[string]string{"bridge": "provider-eni", "host-local": "host-local", "loopback": "loopback"} {
		files, err := node.Plugins("", name)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(node.Root(), "opt/cni/bin"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(node.Root(), "opt/cni/bin", as), files[0].Content, 0o755))
	}
	t.Cleanup(func() {
		on(t, "rm -f "+own+" /opt/cni/bin/provider-eni /opt/cni/bin/host-local /opt/cni/bin/loopback; ip link del eni0; rm -rf /var/lib/cni/networks/cloud")
	})
	require.NoError(t, node.WriteFile(own, conflist(t, provider)))
	nodeReady(t, "True")
	require.Contains(t, pingPods(t), "10.244.7.")
	require.NotEqual(t, "501", valueIn(t, "one"))
	removePingPods(t)
	// The lock of iptables stays, as documented; which address was the last is the
	// provider's, and differs with each pod.
	const forget = "touch /run/xtables.lock; chmod 600 /run/xtables.lock; rm /var/lib/cni/networks/cloud/last_reserved_ip.0"
	on(t, forget)
	before := look(t)

	d := agent(t)
	d.objects = append(d.objects[:len(d.objects)-1], configMap("cilium-config", "cni-config", conflist(t, provider, agents)))
	d.withoutFlags("--cni-conf=", "--cni-conf-name=", "--plugins=")
	d.flags("--plugins=/chain", "--cni-conf-key=cni-config", "--cni-conf-name=05-agent.conflist", "--cni-exclusive", "--wait-loaded=30s")
	d.apply(t)
	d.ready(t)
	require.Equal(t, "05-agent.conflist\n", on(t, "cd /etc/cni/net.d && ls *.conflist"))
	address := pingPods(t)
	require.Contains(t, address, "10.244.7.")
	require.Contains(t, kubectl(t, "exec", "one", "--", "ping", "-c", "3", "-i", "0.2", "-W", "2", address), " 0% packet loss")
	require.Equal(t, "501", valueIn(t, "one"), "the agent's plugin is in the chain")

	d.remove(t)
	u := load(t, "uninstall.yaml")
	u.apply(t)
	message := kubectl(t, "wait", "pods", "--namespace=kube-system", "--selector=app="+u.name, "--timeout=60s",
		"--for=jsonpath={.status.initContainerStatuses[0].lastState.terminated.exitCode}=1",
		"--output=jsonpath={.status.initContainerStatuses[0].lastState.terminated.message}")
	require.Contains(t, message, "sandboxes need it for their deletion: 2")
	require.Contains(t, kubectl(t, "exec", "one", "--", "ping", "-c", "3", "-i", "0.2", "-W", "2", address), " 0% packet loss", "pods that were there stay connected")
	removePingPods(t)
	u.ready(t)
	u.remove(t)
	require.NotContains(t, on(t, "ls /etc/cni/net.d /opt/cni/bin"), "agent")
	require.JSONEq(t, conflist(t, provider), on(t, "cat "+own), "the provider's own is back")
	on(t, forget)
	settles(t, before, "the node is the provider's again")
	address = pingPods(t)
	require.Contains(t, kubectl(t, "exec", "one", "--", "ping", "-c", "3", "-i", "0.2", "-W", "2", address), " 0% packet loss")
	require.NotEqual(t, "501", valueIn(t, "one"))
	removePingPods(t)
}

func conflist(t *testing.T, plugins ...object) string {
	t.Helper()
	text, err := json.Marshal(object{"cniVersion": "0.4.0", "name": "cloud", "plugins": plugins})
	require.NoError(t, err)
	return string(text)
}
