// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package e2e_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/snapshot"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/e2e/cluster"
	"github.com/slipway-dev/slipway/internal/verify/process"
)

const (
	agentConf  = "10-slipway-agent.conflist"
	agentStore = "/var/lib/cni/networks/slipway-agent"
	taint      = "node.agent.example.org/not-ready"
	undo       = "nodeinit uninstall --agent=slipway-agent --any-owner"
)

// natTable makes chains that iptables never removes again.
const natTable = "iptables -t nat -A POSTROUTING -j ACCEPT; iptables -t nat -D POSTROUTING -j ACCEPT"

// boot starts a node, from the disk of another one if it is given, for as long as the test runs.
func boot(t *testing.T, name string, disk *os.File) *cluster.Node {
	t.Helper()
	n, err := node.Boot(context.WithoutCancel(t.Context()), name, disk)
	require.NoError(t, err)
	t.Cleanup(func() {
		saveLogs(t)
		if t.Failed() {
			t.Log(n.Run(context.Background(), "sh", "-c", "/run/nodeinit status; ls /etc/cni/net.d /var/lib/cni/results"))
		}
		forget(t, name)
	})
	_, err = process.Output(exec.Command("cp", filepath.Join(node.Root(), "run/nodeinit"), filepath.Join(n.Root(), "run")), nil)
	require.NoError(t, err)
	return n
}

// forget ends the node if it runs, and has the cluster forget it and its pods.
func forget(t *testing.T, name string) {
	t.Helper()
	for _, n := range slices.Clone(node.Nodes) {
		if n.Name == name {
			require.NoError(t, node.Remove(n))
		}
	}
	kubectl(t, "delete", "node", name, "--ignore-not-found")
	kubectl(t, "delete", "pods", "--all-namespaces", "--field-selector=spec.nodeName="+name, "--force")
}

// cutPower ends a node at once, and returns its disk.
func cutPower(t *testing.T, n *cluster.Node) *os.File {
	t.Helper()
	disk, err := node.CutPower(n)
	require.NoError(t, err)
	t.Cleanup(func() { disk.Close() })
	return disk
}

// workers starts nodes beside the first one: two, or one where time is short.
func workers(t *testing.T) {
	t.Helper()
	names := cluster.Names[1:3]
	if testing.Short() {
		names = names[:1]
	}
	for _, name := range names {
		boot(t, name, nil)
	}
}

// network is the part of the cluster's that is the node's own.
func network(t *testing.T, name string) netip.Prefix {
	t.Helper()
	prefix, err := netip.ParsePrefix(kubectl(t, "get", "node", name, "--output=jsonpath={.spec.podCIDR}"))
	require.NoError(t, err)
	return prefix
}

// joinNetworks has each node send packets for the pods of the others there.
func joinNetworks(t *testing.T) {
	t.Helper()
	for _, n := range node.Nodes {
		for _, other := range node.Nodes {
			if other != n {
				onNode(t, n, fmt.Sprintf("ip route replace %s via %s", network(t, other.Name), other.Address()))
			}
		}
	}
}

// Each node's agent, of the manifest as it is, gives its pods addresses of the node's own, and
// what a power cut, a copy of a disk and a new name do to a node is put right by its start,
// with nothing lost on the others. The agents themselves undo what they have done, all or
// nothing, where they do not come back: also where the manifest is deleted as a whole.
func TestPLAN11_RDY4_AnAgentOnSeveralNodes(t *testing.T) {
	begin(t)
	start := time.Now()
	took := func(what string) {
		t.Logf("%s: %v", what, time.Since(start).Round(time.Second))
		start = time.Now()
	}
	workers(t)
	took("booted")
	before := prepared(t)
	kubectl(t, "taint", "node", "--all", taint+"=:NoSchedule")
	d := embedding(t)
	d.apply(t)
	d.ready(t)
	nodeReady(t, "True")
	require.NotContains(t, kubectl(t, "get", "nodes", "--output=jsonpath={.items[*].spec.taints}"), taint)
	joinNetworks(t)
	podOn(t, "one", cluster.NodeName)
	for _, n := range node.Nodes {
		onOwnNetwork(t, "on-"+n.Name, n.Name)
	}
	require.Equal(t, "False SlipwayAgentIsUp", kubectl(t, "get", "node", node.Nodes[1].Name, `--output=jsonpath={.status.conditions[?(@.type=="NetworkUnavailable")]['status','reason']}`))
	took("every node has its agent and a pod")

	installed := look(t)
	last := d.updatedWithAPowerCut(t)
	settles(t, installed, "an agent that comes back leaves the node as it is")
	took("updated, with a power cut")
	if !testing.Short() {
		disk := cutPower(t, last) // a prepared disk, whose copy is another node's
		last = boot(t, last.Name, disk)
		clone := boot(t, "node-4", disk)
		forgotten := d.settled(t, "on-node-4", clone)
		took("a clone")
		disk = cutPower(t, clone)
		forget(t, clone.Name)
		require.NotEqual(t, forgotten, d.settled(t, "on-node-5", boot(t, "node-5", disk)))
		reaches(t, "one", podReady(t, "on-"+last.Name, 2))
		took("another name")
	}

	d.remove(t)
	nodeReady(t, "True")
	require.Regexp(t, "nothing is undone .*"+undo, on(t, "/run/nodeinit status --output=json || true"), "pods need the network")
	removePingPods(t)
	for _, n := range node.Nodes {
		onNode(t, n, "/run/"+undo)
	}
	isUndone(t, before)
	if !testing.Short() {
		applyObjects(t, d.objects...)
		d.ready(t)
		nodeReady(t, "True")
		deleteObjects(t, d.objects...) // the account before the pods: no question is answered any more
		d.remove(t)
		isUndone(t, before)
	}
	took("undone")
}

// updatedWithAPowerCut updates the agents, and cuts the power of the last node meanwhile, which
// it returns as it is when booted again: pods on the others have lost nothing.
func (d *deployment) updatedWithAPowerCut(t *testing.T) *cluster.Node {
	t.Helper()
	nodes := slices.Clone(node.Nodes)
	last, stays := nodes[len(nodes)-1], nodes[len(nodes)-2]
	watch, ping := watchConf(agentConf), startPing(t, kubectl(t, "get", "pod", "on-"+stays.Name, "--output=jsonpath={.status.podIP}"))
	kubectl(t, "rollout", "restart", "daemonset/"+d.name, "--namespace=kube-system")
	require.Eventually(t, func() bool {
		return kubectl(t, "get", "daemonset", d.name, "--namespace=kube-system", "--output=jsonpath={.status.updatedNumberScheduled}") != "0"
	}, time.Minute, 20*time.Millisecond)
	last = boot(t, last.Name, cutPower(t, last))
	d.ready(t)
	nodeReady(t, "True")
	joinNetworks(t)
	reaches(t, "one", podReady(t, "on-"+last.Name, 1))
	leases(t, last, 1)
	_, missing := watch()
	t.Log(ping())
	require.Zero(t, missing)
	return last
}

// isUndone waits until no node has anything of the agent's.
func isUndone(t *testing.T, before snapshot.Snapshot) {
	t.Helper()
	nodeReady(t, "False")
	settles(t, before, "the node is as it was before", "var/lib/cni", " via 10.250.0.") // the plugin's own store, and the test's routes
	for _, n := range node.Nodes {
		require.NotContains(t, onNode(t, n, "ls /etc/cni/net.d /opt/cni/bin /var/lib"), "slipway", n.Name)
	}
}

// onOwnNetwork starts a pod on the node, which has an address of the node's own and reaches the
// pod that stays, and returns the address.
func onOwnNetwork(t *testing.T, pod, nodeName string) string {
	t.Helper()
	address := podOn(t, pod, nodeName)
	require.True(t, network(t, nodeName).Contains(netip.MustParseAddr(address)), "%s on %s", address, nodeName)
	reaches(t, "one", address)
	return address
}

// settled waits until the agent has prepared a node with the disk of another one, starts a pod
// there, and returns its address. The runtime knows the other's pods until it has removed them.
func (d *deployment) settled(t *testing.T, pod string, n *cluster.Node) string {
	t.Helper()
	d.ready(t)
	nodeReady(t, "True")
	joinNetworks(t)
	address := onOwnNetwork(t, pod, n.Name)
	leases(t, n, 1)
	return address
}

// leases waits until the node's pods have so many addresses.
func leases(t *testing.T, n *cluster.Node, count int) {
	t.Helper()
	var all []string
	require.Eventually(t, func() bool {
		all = strings.Fields(onNode(t, n, "cd "+agentStore+"; ls -d 10.*"))
		return len(all) == count
	}, 3*time.Minute, 200*time.Millisecond, "%v", all)
}
