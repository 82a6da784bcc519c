// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build cilium

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/verify/image"
)

// ciliums are the arrangements of Cilium's own chart: as it is, and with our
// components over it.
var ciliums = []struct{ name, component string }{
	{"Cilium's six", ""},
	{"one init container", "cilium/one"},
	{"run, no init container", "cilium/run"},
}

// compiler is what the agent compiles its programs with when it starts.
const compiler = "clang-19"

// importImage gives the node an image as Cilium's is, with nodeinit in it: agent,
// operator and CNI plugin from their Go module, and what they run from this machine.
func (r *ciliumRelease) importImage(t *testing.T) {
	t.Helper()
	if r.imported == node {
		return
	}
	nodeinit, err := build(t.Context(), "examples/nodeinit")
	require.NoError(t, err)
	c := append(r.agentContents(t), image.File{Path: "/usr/bin/nodeinit", Mode: 0o755, Content: nodeinit})
	require.NoError(t, node.Import(t.Context(), r.image(), nil, c...))
	r.imported = node
}

// agentContents are those of Cilium's own image, as far as anything here runs them.
func (r *ciliumRelease) agentContents(t *testing.T) contents {
	t.Helper()
	c := r.initContents(t)
	c.built(t, r, map[string]string{
		"/usr/bin/cilium-agent": "daemon", "/usr/bin/cilium-operator-generic": "operator",
		"/usr/bin/cilium-health-responder": "cilium-health/responder",
	})
	c.file(t, "/cni-uninstall.sh", filepath.Join(r.source(t), "plugins/cilium-cni/cni-uninstall.sh"))
	c.program(t, compiler, "clang")
	c = slices.DeleteFunc(c, func(f image.File) bool { return f.Path == "/bin/find" }) // busybox's cannot delete
	for _, name := range []string{"find", "ipset", "iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"} {
		c.program(t, name, name)
	}
	matches, err := filepath.Glob("/usr/lib/*-linux-gnu/xtables/*.so")
	require.NoError(t, err)
	for _, path := range matches {
		c.file(t, path, path)
	}
	c.directory(t, "/var/lib/cilium/bpf", filepath.Join(r.source(t), "bpf"))
	return c
}

// ciliumValues are what a cluster of one node needs, whose API server is at another
// address than that of its service, and no more.
var ciliumValues = []string{
	"operator.replicas=1", "envoy.enabled=false", "l7Proxy=false", "hubble.enabled=false",
	"k8sServiceHost=10.250.0.2", "k8sServicePort=6443", "ipam.operator.clusterPoolIPv4PodCIDRList={10.244.0.0/16}",
}

// deployment is the release's chart, with our component over it if there is one.
// Changed are the images, the directory of the kernel's modules, and the capabilities that
// this machine has not got.
func (r *ciliumRelease) deployment(t *testing.T, component string, values ...string) *deployment {
	t.Helper()
	images := []string{"image.override=" + r.image(), "operator.image.override=" + r.image()}
	manifest := r.chart(t, slices.Concat(images, ciliumValues, values)...)
	if component != "" {
		manifest = []byte(postRender(t, manifest, component))
	}
	d := &deployment{name: "cilium", objects: documents(t, manifest)}
	for _, o := range d.objects {
		kind := o["kind"]
		if kind != "DaemonSet" && kind != "Deployment" {
			continue
		}
		pod := at(o, "spec", "template", "spec")
		inits, _ := pod["initContainers"].([]any)
		for _, c := range slices.Concat(inits, pod["containers"].([]any)) {
			r.own(c.(object))
		}
		if kind == "DaemonSet" {
			at(o, "spec", "template", "metadata", "labels")["app"] = d.name
			d.pod, d.init = pod, slices.Concat(inits, pod["containers"].([]any))[0].(object)
			for _, v := range pod["volumes"].([]any) { // a throw-away node's /lib is read-only, and may be without
				if host := v.(object); host["name"] == "lib-modules" {
					at(host, "hostPath")["path"] = "/run/e2e/modules"
					at(host, "hostPath")["type"] = "DirectoryOrCreate"
				}
			}
		}
	}
	require.NotNil(t, d.pod)
	return d
}

// base applies all but the DaemonSet, for as long as the test runs, and waits for
// the operator, which makes the custom resources that the agent needs.
func (d *deployment) base(t *testing.T) {
	t.Helper()
	base := slices.DeleteFunc(slices.Clone(d.objects), func(o object) bool { return o["kind"] == "DaemonSet" })
	t.Cleanup(func() {
		saveLogs(t)
		d.end(t)
	})
	applyObjects(t, base...)
	kubectl(t, "rollout", "status", "deployment/cilium-operator", "--namespace=kube-system", "--timeout=120s")
}

// agentReady waits until the agent's pod is, and returns its name and when it was.
func (d *deployment) agentReady(t *testing.T) (name string, when time.Time) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		answer, err := node.Admin().Get(ctx, "/api/v1/namespaces/kube-system/pods?labelSelector=app%3D"+d.name)
		require.NoError(t, err)
		var pods struct {
			Items []struct {
				Metadata struct{ Name, DeletionTimestamp string }
				Status   struct {
					Conditions []struct{ Type, Status string }
				}
			}
		}
		require.NoError(t, json.Unmarshal(answer, &pods))
		for _, pod := range pods.Items {
			for _, c := range pod.Status.Conditions {
				if c.Type == "Ready" && c.Status == "True" && pod.Metadata.DeletionTimestamp == "" {
					tick.Stop()
					return pod.Metadata.Name, time.Now()
				}
			}
		}
		<-tick.C
	}
}

// takeBack leaves the node as it was before Cilium.
func takeBack(t *testing.T) string {
	t.Helper()
	return on(t, "/run/nodeinit cleanup --all-state --force; /run/nodeinit uninstall --any-owner --force")
}

// How long it takes from the creation of the DaemonSet until the real agent has
// started, and until it is Ready, in turn, on a node that was taken back in between.
func TestCiliumStarts(t *testing.T) {
	begin(t)
	release := namedCilium(t)
	release.importImage(t)
	const rounds = 5
	started, ready := make([][]time.Duration, len(ciliums)), make([][]time.Duration, len(ciliums))
	var all []*deployment
	for _, c := range ciliums {
		all = append(all, release.deployment(t, c.component))
	}
	all[0].base(t)
	t.Cleanup(func() { endCilium(t) })
	for round := range rounds {
		for i, d := range all {
			created := time.Now()
			require.NoError(t, node.Admin().Create(t.Context(), "/apis/apps/v1/namespaces/kube-system/daemonsets", d.daemonSet()))
			pod, when := d.agentReady(t)
			first := firstTime(kubectl(t, "logs", pod, "--namespace=kube-system", "--container=cilium-agent"))
			require.False(t, first.IsZero())
			started[i], ready[i] = append(started[i], first.Sub(created)), append(ready[i], when.Sub(created))
			t.Logf("round %d, %-24s agent %5d ms, Ready %5d ms (load %s)", round+1, ciliums[i].name, first.Sub(created).Milliseconds(), when.Sub(created).Milliseconds(), loadAverage(t))
			d.remove(t)
			takeBack(t)
			on(t, "rm -rf /opt/cni/bin/* /etc/cni/net.d/* /run/cilium /var/run/cilium")
		}
	}
	t.Logf("%-24s %26s   %26s", "DaemonSet created to", "agent's first line", "agent Ready")
	for i, c := range ciliums {
		t.Logf("%-24s %s   %s", c.name, compared(started[0], started[i]), compared(ready[0], ready[i]))
	}
}

// compared is the median of took, with the least and the most, beside that of first.
func compared(first, took []time.Duration) string {
	slices.Sort(first)
	slices.Sort(took)
	middle := len(took) / 2
	return fmt.Sprintf("%5d ms (%d to %d), %.1f times, %.1f s sooner", took[middle].Milliseconds(), took[0].Milliseconds(), took[len(took)-1].Milliseconds(),
		float64(first[middle])/float64(took[middle]), (first[middle] - took[middle]).Seconds())
}

func loadAverage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	require.NoError(t, err)
	return strings.Fields(string(text))[0]
}

// A node's life with the real agent, from NotReady until it is as it was before,
// looked at with the tools of others.
func TestLifeOfANodeWithCilium(t *testing.T) {
	begin(t)
	release := namedCilium(t)
	release.importImage(t)
	prepareForCilium(t)
	for _, c := range []struct {
		name, component string
		values          []string
	}{
		{"one init container", "cilium/one", nil},
		{"run, no init container", "cilium/run", nil},
		{"kube-proxy replacement, native routing", "cilium/one", nativeRouting},
	} {
		t.Run(c.name, func(t *testing.T) {
			begin(t)
			nodeReady(t, "False")
			before := look(t)
			d := release.deployment(t, c.component, c.values...)
			d.base(t)
			applyObjects(t, d.daemonSet())
			first, _ := d.agentReady(t)
			nodeReady(t, "True")
			pingEachOther(t)

			kubectl(t, "delete", "pod", first, "--namespace=kube-system")
			second, _ := d.agentReady(t)
			require.NotEqual(t, first, second)
			log := kubectl(t, "logs", second, "--namespace=kube-system", "--container="+d.init["name"].(string))
			require.Regexp(t, unchanged, log)
			pingEachOther(t)
			takesNothingFromTheLiving(t)

			noSandboxes(t)
			d.end(t)
			cleaner(t).uninstall(t)
			nodeReady(t, "False")
			removeUnrecorded(t)
			settles(t, before, "the node is as it was before")
		})
	}
}

// nativeRouting is the other datapath: no tunnel, and services without kube-proxy.
var nativeRouting = []string{
	"kubeProxyReplacement=true", "bpf.masquerade=true", "routingMode=native", "ipv4NativeRoutingCIDR=10.244.0.0/16",
}

// prepareForCilium gives the node what is others', and what stays of a look at it and of
// iptables, which never removes its own chains. It takes away what an earlier agent has set.
func prepareForCilium(t *testing.T) {
	t.Helper()
	on(t, "rm -rf /var/lib/cni/networks; echo 0 > /proc/sys/net/ipv4/fib_multipath_use_neigh")
	on(t, script(t, "foreign.sh"))
	on(t, `for chain in "raw PREROUTING" "raw OUTPUT" "mangle PREROUTING" "mangle POSTROUTING"; do
		iptables -t ${chain% *} -A ${chain#* } -j ACCEPT; iptables -t ${chain% *} -D ${chain#* } -j ACCEPT
	done`)
	look(t) // looking for rules makes the kernel's tables
}

// removeUnrecorded takes away what there is no record of: a directory that the kubelet made
// for the chart, and what only the agent has set.
func removeUnrecorded(t *testing.T) {
	t.Helper()
	on(t, "[ ! -e /run/cilium ] || rmdir /run/cilium || { find /run/cilium; exit 1; }; echo 0 > /proc/sys/net/ipv4/fib_multipath_use_neigh")
}

// end takes everything away but what the agent has left on the node.
func (d *deployment) end(t *testing.T) {
	t.Helper()
	deleteObjects(t, d.objects...)
	kubectl(t, "wait", "--for=delete", "pods", "--all", "--namespace=kube-system", "--timeout=60s")
}

// takesNothingFromTheLiving checks that whatever takes the node away is refused while
// the agent runs, also where it answers nobody, and changes nothing: from the node, and
// from the manifest that takes all back.
func takesNothingFromTheLiving(t *testing.T) {
	t.Helper()
	address := pingPods(t)
	before := look(t)
	signal := func(name string) {
		on(t, "kill -"+name+" $(grep -lx cilium-agent /proc/[0-9]*/comm | cut -d/ -f3)")
	}
	for name, set := range map[string]string{"running": "CONT", "frozen": "STOP"} {
		signal(set)
		for _, command := range []string{
			"cleanup --all-state --force", "cleanup --bpf-state --force", "uninstall --any-owner",
		} {
			out, err := node.Run(t.Context(), "/run/nodeinit", strings.Fields(command)...)
			require.Error(t, err, "%s: %s", name, command)
			require.Contains(t, out+err.Error(), "the agent is running", "%s: %s", name, command)
			t.Logf("%s, %s: %s%v", name, command, out, err)
		}
		signal("CONT")
	}
	d := cleaner(t)
	d.apply(t)
	message := d.says(t, 0)
	require.Contains(t, message, "the agent is running")
	t.Log("the manifest:", message)
	d.remove(t)
	settles(t, before, "the node is as it was before", "bpf prog:", "bpf map:", "cilium-cni.log") // the agent exchanges its own
	require.Contains(t, kubectl(t, "exec", "one", "--", "ping", "-c", "3", "-i", "0.2", "-W", "2", address), " 0% packet loss")
	removePingPods(t)
}

// A node with Cilium's own six init containers gets ours by an update of the
// DaemonSet, and its own again: the configuration is always there, and no pod loses a
// packet.
func TestMigrationOfCilium(t *testing.T) {
	begin(t)
	t.Cleanup(func() { endCilium(t) })
	release := namedCilium(t)
	release.importImage(t)
	own := release.deployment(t, "")
	address := own.runs(t)
	for _, c := range ciliums[1:] {
		require.Zero(t, release.deployment(t, c.component).replaces(t, "to "+c.name, address))
		require.Zero(t, own.replaces(t, "to its own six again", address))
	}
}

// runs starts the agent, and two pods, and returns the address of the second.
func (d *deployment) runs(t *testing.T) string {
	t.Helper()
	d.base(t)
	applyObjects(t, d.daemonSet())
	d.agentReady(t)
	nodeReady(t, "True")
	return pingPods(t)
}

// replaces updates the DaemonSet while one pod pings another, of which no packet may
// be lost, and returns how often there was no configuration.
func (d *deployment) replaces(t *testing.T, how, address string) int {
	t.Helper()
	watch, ping := watchConf("05-cilium.conflist"), startPing(t, address)
	applyObjects(t, d.daemonSet())
	kubectl(t, "rollout", "status", "daemonset/cilium", "--namespace=kube-system", "--timeout=120s")
	looks, missing := watch()
	t.Logf("%s: %d looks, missing %d times; %s", how, looks, missing, ping())
	return missing
}

// daemonSet is the object whose pods d.pod describes.
func (d *deployment) daemonSet() object {
	for _, o := range d.objects {
		if o["kind"] == "DaemonSet" {
			return o
		}
	}
	return nil
}
