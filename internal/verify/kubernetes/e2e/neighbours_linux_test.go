// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/image"
)

const (
	neighboursImage = "slipway.test/neighbours:1"
	chainedConf     = "04-chained.conflist"
	mainConf        = "05-e2e.conflist"
)

// neighbours are two agents of the node, and the pods that watch its network.
type neighbours struct {
	first, second *deployment
	address       string // of a pod that the first has connected
	ping          func() string
	count         *counter
}

// A main agent connects pods, and another one is chained onto its plugin, of which it
// brings none, beside some that both bring. Whichever is uninstalled first, the other one's
// pods stay connected, come and go; and then the node is as it was before.
func TestPLAN14_CNI8_AChainedAgentBesideAMainOne(t *testing.T) {
	testns.SkipShort(t, "two minutes")
	begin(t)
	importNeighbours(t)
	for name, uninstall := range map[string]func(neighbours, *testing.T){
		"the chained one is uninstalled first": neighbours.uninstallChainedFirst,
		"the main one is uninstalled first":    neighbours.uninstallMainFirst,
	} {
		t.Run(name, func(t *testing.T) {
			begin(t)
			prepareCounting(t)
			before := prepared(t)
			n := installNeighbours(t)
			both := look(t)
			for _, d := range []*deployment{n.second, n.first} { // as after a reboot, in any order
				kubectl(t, "rollout", "restart", "daemonset/"+d.name, "--namespace=kube-system")
			}
			for _, d := range []*deployment{n.first, n.second} {
				kubectl(t, "rollout", "status", "daemonset/"+d.name, "--namespace=kube-system", "--timeout=180s")
			}
			settles(t, both, "agents that agree leave the node to each other")
			uninstall(n, t)
			nodeReady(t, "False")
			settles(t, before, "the node is as it was before", "var/lib/cni") // the store is the network's own plugin's
		})
	}
}

// installNeighbours installs the main agent, connects two pods, of which one pings the
// other from now on, and then the chained one, which connects the pod chained.
func installNeighbours(t *testing.T) (n neighbours) {
	t.Helper()
	n.first, n.second = mainAgent(t), chainedAgent(t)
	n.first.apply(t)
	n.first.ready(t)
	nodeReady(t, "True")
	n.count = startCounting(t)
	n.address = pingPods(t)
	n.ping = startPing(t, n.address)
	n.second.apply(t)
	n.second.ready(t)
	reachingPod(t, "chained", n.address)
	require.Equal(t, "501", valueIn(t, "chained"), "the chained agent's plugin connects pods too")
	require.NotEqual(t, "501", valueIn(t, "one"))
	return n
}

// uninstallChainedFirst uninstalls the chained agent, which waits for the pod that its
// plugin has connected, but for no other; and then the main one.
func (n neighbours) uninstallChainedFirst(t *testing.T) {
	t.Helper()
	n.second.remove(t)
	u := uninstallerOf(t, "chained")
	u.apply(t)
	require.Contains(t, u.says(t, 0), chainedConf+" is kept: sandboxes need it for their deletion: 1")
	removePod(t, "chained")
	u.ready(t)
	u.remove(t)
	require.Equal(t, mainConf+"\n", on(t, "cd /etc/cni/net.d && ls *.conflist"))
	require.NotContains(t, on(t, "ls /opt/cni/bin"), "agent-cni")

	reachingPod(t, "after", n.address)
	require.NotEqual(t, "501", valueIn(t, "after"))
	removePod(t, "after")
	n.end(t)
	uninstallRest(t, n.first)
}

// uninstallMainFirst uninstalls the main agent, whose plugins the chained one's configuration
// names: they stay for existing pods and for new ones, until that agent has gone.
func (n neighbours) uninstallMainFirst(t *testing.T) {
	t.Helper()
	n.first.remove(t)
	said := uninstallerOf(t, "cilium").uninstall(t)
	for _, plugin := range []string{"bridge", "host-local"} {
		require.Contains(t, said, "/opt/cni/bin/"+plugin+" is still needed: /etc/cni/net.d/"+chainedConf+" names it")
	}
	require.Equal(t, chainedConf+"\n", on(t, "cd /etc/cni/net.d && ls *.conflist"))
	require.Subset(t, strings.Fields(on(t, "ls /opt/cni/bin")), []string{"agent-cni", "bridge", "host-local", "loopback", "portmap"})

	reachingPod(t, "after", n.address)
	require.Equal(t, "501", valueIn(t, "after"))
	removePod(t, "after")
	removePod(t, "chained")
	n.end(t)
	n.second.remove(t)
	uninstallerOf(t, "chained").uninstall(t)
	uninstallRest(t, n.first)
}

// end removes the pods, which were connected all the time.
func (n neighbours) end(t *testing.T) {
	t.Helper()
	t.Log(n.ping())
	removePingPods(t)
	n.count.end(t)
}

// uninstallRest uninstalls the main agent, or the rest of it, and the leftovers of its
// network's plugins.
func uninstallRest(t *testing.T, d *deployment) {
	t.Helper()
	d.remove(t)
	uninstaller(t).uninstall(t)
}

// importNeighbours gives the node the image of both agents, which has a configuration for
// each.
func importNeighbours(t *testing.T) {
	t.Helper()
	var network object
	require.NoError(t, json.Unmarshal([]byte(script(t, mainConf)), &network))
	network["plugins"] = append(network["plugins"].([]any), object{"type": "agent-cni", "sysctl": object{"net.core.somaxconn": "501"}})
	conf, err := json.Marshal(network)
	require.NoError(t, err)
	shared, err := node.Plugins("/chain", "loopback", "portmap")
	require.NoError(t, err)
	files, err := agentFiles(t.Context(), append(append(counted(t), shared...),
		image.File{Path: "/cni-conf/" + chainedConf, Mode: 0o644, Content: conf})...)
	require.NoError(t, err)
	require.NoError(t, node.Import(t.Context(), neighboursImage, []string{"/bin/sh"}, files...))
}

func mainAgent(t *testing.T) *deployment {
	t.Helper()
	d := agent(t)
	d.init["image"] = neighboursImage
	return d
}

// chainedAgent has a name of its own in the cluster and on the node.
func chainedAgent(t *testing.T) *deployment {
	t.Helper()
	d := mainAgent(t)
	d.withoutFlags("--cni-conf", "--plugins=")
	d.flags("--agent=chained", "--plugins=/chain", "--cni-conf=/cni-conf/"+chainedConf, "--cni-conf-name="+chainedConf)
	return d.named("chained")
}

// uninstallerOf undoes one agent's changes, and nothing else.
func uninstallerOf(t *testing.T, name string) *deployment {
	t.Helper()
	d := load(t, "uninstall.yaml")
	d.flags("--agent=" + name)
	return d
}

// says returns why an init container has failed.
func (d *deployment) says(t *testing.T, container int) string {
	t.Helper()
	state := fmt.Sprintf(".status.initContainerStatuses[%d].lastState.terminated", container)
	return kubectl(t, "wait", "pods", "--namespace=kube-system", "--selector=app="+d.name, "--timeout=120s",
		"--for=jsonpath={"+state+".exitCode}=1", "--output=jsonpath={"+state+".message}")
}

// reachingPod starts a pod, which reaches another one.
func reachingPod(t *testing.T, name, address string) {
	t.Helper()
	t.Cleanup(func() { removePod(t, name) })
	applyObjects(t, waitingPod(name, nil))
	kubectl(t, "wait", "pod", name, "--for=condition=Ready", "--timeout=120s")
	require.Contains(t, kubectl(t, "exec", name, "--", "ping", "-c", "2", "-W", "10", address), " 0% packet loss")
}

func removePod(t *testing.T, name string) {
	t.Helper()
	kubectl(t, "delete", "pod", name, "--ignore-not-found", "--timeout=120s")
}

// valueIn returns the value that the chained agent's plugin writes in a pod.
func valueIn(t *testing.T, pod string) string {
	t.Helper()
	return strings.TrimSpace(kubectl(t, "exec", pod, "--", "cat", "/proc/sys/net/core/somaxconn"))
}
