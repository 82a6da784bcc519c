// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build compare

package e2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const rounds = 5

// chains are what comes before an agent runs. The first is what the others are
// compared with.
var chains = []struct {
	name string
	make func(*testing.T) *deployment
}{
	{"Cilium's six", ciliumsSix},
	{"six of nodeinit's", six},
	{"one init container", agent},
	{"run, no init container", entrypoint},
	{"embedding agent", embedding},
}

// How long it takes from the creation of a DaemonSet to the agent's own first
// timestamp, in turn, on a node that was taken back in between.
func TestComparisonOfStarts(t *testing.T) {
	begin(t)
	importCilium(t)
	took := make([][]time.Duration, len(chains))
	for range rounds {
		for i, c := range chains {
			took[i] = append(took[i], start(t, c.make(t)))
		}
	}
	t.Logf("%-24s %9s %9s %9s", "DaemonSet created to", "median", "least", "most")
	for i, c := range chains {
		slices.Sort(took[i])
		median := took[i][rounds/2]
		t.Logf("%-24s %7d ms %6d ms %6d ms  %.1f times sooner", c.name, median.Milliseconds(), took[i][0].Milliseconds(),
			took[i][rounds-1].Milliseconds(), float64(took[0][rounds/2])/float64(median))
	}
}

func start(t *testing.T, d *deployment) time.Duration {
	t.Helper()
	at := slices.IndexFunc(d.objects, func(o object) bool { return o["kind"] == "DaemonSet" })
	daemonSet := d.objects[at]
	applyObjects(t, slices.Delete(d.objects, at, at+1)...)
	created := time.Now()
	require.NoError(t, node.Admin().Create(t.Context(), "/apis/apps/v1/namespaces/kube-system/daemonsets", daemonSet))
	t.Cleanup(func() {
		saveLogs(t)
		d.remove(t)
	})
	pod := d.ready(t)
	first := firstTime(kubectl(t, "logs", pod, "--namespace=kube-system", "--container="+d.last()))
	require.False(t, first.IsZero())
	d.remove(t)
	on(t, "/run/nodeinit uninstall --any-owner --force; umount /sys/fs/bpf 2>/dev/null || true; umount /run/cilium/cgroupv2 2>/dev/null || true; rm -rf /var/lib/cni/networks/* /run/slipway.lock /run/cilium /opt/cni/bin/* /etc/sysctl.d/*")
	return first.Sub(created)
}

// last is the name of the agent's container.
func (d *deployment) last() string {
	return d.pod["containers"].([]any)[0].(object)["name"].(string)
}

// six is a chain as Cilium's, container for container, of nodeinit's commands that
// take the place of one each. What takes the time are the containers.
func six(t *testing.T) *deployment {
	t.Helper()
	d := agent(t)
	d.capabilities("NET_ADMIN", "NET_RAW")
	var inits []any
	for _, command := range []string{
		"build-config --source=config-map:cilium-config,cilium-node-config:kube-system,node --dest=/tmp/cilium/config-map",
		"mount-cgroup --host-proc=/hostproc", "sysctlfix --host-proc=/hostproc", "mount-bpffs --host-proc=/hostproc",
		"cleanup --host-proc=/hostproc -f",
		"install-cni --host-proc=/hostproc --plugins=/cni --cni-conf=/cni-conf/05-e2e.conflist --cni-conf-name=05-e2e.conflist",
	} {
		one := object{}
		for key, value := range d.init {
			one[key] = value
		}
		words := strings.Fields(command)
		one["name"] = words[0]
		one["command"] = append([]any{"nodeinit"}, anything(words)...)
		inits = append(inits, one)
	}
	d.pod["initContainers"] = inits
	return d
}

func anything(words []string) (list []any) {
	for _, w := range words {
		list = append(list, w)
	}
	return list
}
