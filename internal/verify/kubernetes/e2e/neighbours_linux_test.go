// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package e2e_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/image"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/e2e/cluster"
)

const (
	mainConf   = "05-e2e.conflist"
	olderImage = "slipway.test/agent:0"
	othersMaps = "bpf map:" // of other tests on this machine: they have the same kernel
)

// neighbour is one of two agents of the same nodes.
type neighbour struct {
	*deployment
	name string // on the nodes
	conf string
	pods []string // that its network has connected
	ends func()   // ends their pings
}

// Flannel and another agent come one after the other to the same nodes, in either order, and
// whichever goes first, pods that are connected by the other one lose nothing, across nodes;
// those that it has itself connected are waited for. Where Flannel brings its own plugin alone,
// those that it calls are the other's, and stay. The other's older version takes its turn, and this
// one again. In the end the nodes are as they were before.
func TestPLAN11_PLAN14_CNI8_FlannelBesideAnotherAgent(t *testing.T) {
	testns.SkipShort(t, "five minutes")
	begin(t)
	workers(t)
	manifest := importFlannel(t)
	older, err := agentFiles(t.Context(), image.File{Path: "/usr/bin/nodeinit", Mode: 0o755, Content: olderNodeinit(t)})
	require.NoError(t, err)
	require.NoError(t, node.Import(t.Context(), olderImage, []string{"/bin/sh"}, older...))
	for i, name := range []string{"Flannel comes first and goes first", "Flannel comes first and goes last", "Flannel comes last and goes first", "Flannel comes last and goes last"} {
		t.Run(name, func(t *testing.T) {
			begin(t)
			comesFirst, goesFirst := i < 2, i%2 == 0
			before := prepared(t)
			plugins := "/cni"
			if comesFirst {
				plugins = "/all"
			}
			f := &neighbour{deployment: flannel(t, manifest, plugins), name: "flannel", conf: flannelConf}
			other := &neighbour{deployment: ownNetworks(t), name: "cilium", conf: mainConf}
			first, second := other, f
			if comesFirst {
				first, second = f, other
			}
			first.comes(t)
			first.connects(t, "early")
			second.comes(t)
			other.connects(t, "late") // its configuration is the first by name
			installed := lookAt(t, node.Node)
			watch := watchConf(other.conf)
			for _, image := range []string{olderImage, agentImage} {
				kubectl(t, "set", "image", "daemonset/"+other.deployment.name, other.init["name"].(string)+"="+image, "--namespace=kube-system")
				other.ready(t)
				kubectl(t, "rollout", "restart", "daemonset/"+f.deployment.name, "--namespace=kube-system")
				f.ready(t)
			}
			_, missing := watch()
			require.Zero(t, missing)
			settles(t, installed, "agents that agree leave the node to each other", othersMaps)

			goes, stays := other, f
			if goesFirst {
				goes, stays = f, other
			}
			goes.goes(t)
			require.Equal(t, stays.conf+"\n", on(t, "cd /etc/cni/net.d && ls *.conflist"))
			nodeReady(t, "True")
			stays.connects(t, "later")
			stays.goes(t)
			uninstaller(t).uninstall(t)
			uninstallerWith(t, "flannel", script(t, "../../../../../cleanup/ownershipfile/testdata/flannel.yaml")).uninstall(t)
			nodeReady(t, "False")
			settles(t, before, "the node is as it was before", "var/lib/cni", " via 10.250.0.", othersMaps)
		})
	}
}

// ownNetworks is an agent whose configuration has addresses of each node's own.
func ownNetworks(t *testing.T) *deployment {
	t.Helper()
	d := agent(t)
	const dir, network = "/run/e2e/networks", "10.245.%d.0/24"
	for i, n := range node.Nodes {
		require.NoError(t, n.WriteFile(dir+"/"+mainConf, strings.ReplaceAll(script(t, mainConf), "10.244.0.0/24", fmt.Sprintf(network, i))))
		for j, other := range node.Nodes {
			if i != j {
				onNode(t, n, fmt.Sprintf("ip route replace "+network+" via %s", j, other.Address()))
			}
		}
	}
	d.withoutFlags("--cni-conf=")
	d.flags("--cni-conf=" + dir + "/" + mainConf)
	d.mount(dir, object{"hostPath": object{"path": dir}})
	return d
}

func (n *neighbour) comes(t *testing.T) {
	t.Helper()
	n.apply(t)
	n.ready(t)
	nodeReady(t, "True")
}

// connects starts a pod on each node, and has that of the first node ping the others.
func (n *neighbour) connects(t *testing.T, set string) {
	t.Helper()
	earlier := n.ends
	var pings []func() string
	for i, on := range node.Nodes {
		pod, from := set+"-"+on.Name, set+"-"+cluster.NodeName
		address := podOn(t, pod, on.Name)
		n.pods = append(n.pods, pod)
		if i > 0 {
			reaches(t, from, address)
			pings = append(pings, startPingFrom(t, from, address))
		}
	}
	n.ends = func() {
		for _, ping := range pings {
			t.Log(n.name, set, ping())
		}
		if earlier != nil {
			earlier()
		}
	}
}

// goes uninstalls the agent, which waits on each node for the pods that it has connected.
func (n *neighbour) goes(t *testing.T) {
	t.Helper()
	n.remove(t)
	u := uninstallerOf(t, n.name)
	u.apply(t)
	if len(n.pods) > 0 {
		said := u.says(t, 0)
		require.Len(t, regexp.MustCompile("nodeinit: .*"+n.conf+" is kept: sandboxes need it for their deletion").FindAllString(said, -1), len(node.Nodes), said)
		n.ends()
		kubectl(t, append([]string{"delete", "pod", "--timeout=120s"}, n.pods...)...)
		for _, on := range node.Nodes { // the runtime uses the configuration of today, and leaves another one's results, too new to be told from those of pods that start
			onNode(t, on, "touch --no-create --date='1 hour ago' /var/lib/cni/results/*")
		}
	}
	u.ready(t)
	u.remove(t)
}

// uninstallerOf undoes one agent's changes, and nothing else.
func uninstallerOf(t *testing.T, name string) *deployment {
	t.Helper()
	d := load(t, "uninstall.yaml")
	d.flags("--agent=" + name)
	return d
}

// says returns why an init container of each pod has failed.
func (d *deployment) says(t *testing.T, container int) string {
	t.Helper()
	state := fmt.Sprintf(".status.initContainerStatuses[%d].lastState.terminated", container)
	return kubectl(t, "wait", "pods", "--namespace=kube-system", "--selector=app="+d.name, "--timeout=120s",
		"--for=jsonpath={"+state+".exitCode}=1", "--output=jsonpath={"+state+".message}")
}
