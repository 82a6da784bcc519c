// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/testns"
)

// natTable makes chains that iptables never removes again.
const natTable = "iptables -t nat -A POSTROUTING -j ACCEPT; iptables -t nat -D POSTROUTING -j ACCEPT"

const taint = "node.agent.example.org/not-ready"

// The agent's manifest as it is, with no init container: from a node that is NotReady
// and tainted until one that is as it was before. The agent itself undoes what it has done, all
// or nothing, where it does not come back: also where its manifest is deleted as a whole.
func TestRDY4_LifeOfANodeWithAnAgentThatEmbeds(t *testing.T) {
	testns.SkipShort(t, "half a minute")
	begin(t)
	before := prepared(t)
	kubectl(t, "taint", "node", "--all", taint+"=:NoSchedule")

	d := embedding(t)
	d.apply(t)
	first := d.ready(t)
	nodeReady(t, "True")
	require.NotContains(t, kubectl(t, "get", "nodes", "--output=jsonpath={.items[*].spec.taints}"), taint)
	require.Equal(t, "False SlipwayAgentIsUp", kubectl(t, "get", "nodes", `--output=jsonpath={.items[*].status.conditions[?(@.type=="NetworkUnavailable")]['status','reason']}`))
	pingEachOther(t)

	// An address that leaked is released at the next start; that of a pod is not. Both
	// are old enough.
	applyObjects(t, waitingPod("stays", nil))
	kubectl(t, "wait", "pod", "stays", "--for=condition=Ready", "--timeout=60s")
	address := kubectl(t, "get", "pod", "stays", "--output=jsonpath={.status.podIP}")
	installed := look(t)
	on(t, "cd /var/lib/cni/networks/slipway-agent; printf 'gone\\r\\neth0' >10.244.0.99; touch -d '1 hour ago' 10.*")

	kubectl(t, "delete", "pod", first, "--namespace=kube-system")
	second := d.ready(t)
	require.NotEqual(t, first, second)
	require.Contains(t, kubectl(t, "logs", second, "--namespace=kube-system"), "[release 10.244.0.99: the container runtime does not know the sandbox gone]")
	require.Equal(t, address, strings.TrimSpace(on(t, "cd /var/lib/cni/networks/slipway-agent; ls -d 10.*")))
	settles(t, installed, "an agent that comes back leaves the node as it is")

	d.remove(t)
	nodeReady(t, "True")
	settles(t, installed, "nothing is undone as long as a pod needs the network")
	const undo = "nodeinit uninstall --agent=slipway-agent --any-owner"
	require.Regexp(t, "nothing is undone .*"+undo, on(t, "/run/nodeinit status --output=json || true"))
	kubectl(t, "delete", "pod", "stays")
	on(t, "/run/"+undo)
	nodeReady(t, "False")
	settles(t, before, "the node is as it was before", "var/lib/cni") // the store is the network's own plugin's

	// The account is deleted before the pods, and no question is answered any more.
	applyObjects(t, d.objects...)
	d.ready(t)
	nodeReady(t, "True")
	manifest, err := json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": d.objects})
	require.NoError(t, err)
	require.NoError(t, node.WriteFile("/run/agent.json", string(manifest)))
	kubectl(t, "delete", "--filename=/run/agent.json")
	d.remove(t)
	nodeReady(t, "False")
	on(t, "rm /run/agent.json")
	settles(t, before, "the node is as it was before", "var/lib/cni")
}
