// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

//go:build cilium

package e2e_test

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/configresolve/kube"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/e2e/cluster"
)

// Where a policy of Cilium's host firewall leaves the API server out, an agent that is
// restarted becomes Ready, with Cilium's own init containers and with ours, by the mark
// that the policy lets pass. Without the mark it never reads its configuration, not even
// when the policy has been deleted: only an agent, or cleanup, takes that from the node.
func TestHostFirewallOfCilium(t *testing.T) {
	begin(t)
	release := cilium120 // 1.18's agent has no mark
	release.importImage(t)
	serveOutside(t)
	t.Cleanup(func() { endCilium(t) })
	all := firewalled(t, release)
	all[0].base(t)
	t.Cleanup(func() { deletePolicy(t) })

	open := restartsOf(t, all)
	for i, c := range ciliums[:2] {
		all[i].leavesAPIServerOut(t)
		unmarked := release.deployment(t, c.component, hostFirewall...)
		unmarked.neverStarts(t, c.name, c.component != "")
		deletePolicy(t)
		require.Error(t, answers(t, 0), "no agent takes the policy from the node")
		unmarked.remove(t)
	}
	all[0].leavesAPIServerOut(t)
	closed := restartsOf(t, all)
	require.Error(t, answers(t, 0))
	takeBack(t)
	require.NoError(t, answers(t, 0), "cleanup takes the policy from the node")
	for i, c := range ciliums {
		t.Logf("%-24s no policy: %s", c.name, compared(open[0].took, open[i].took))
		t.Logf("%-24s a policy:  %s", c.name, compared(closed[0].took, closed[i].took))
		if c.component != "" {
			require.NotContains(t, open[i].log, onlyMarked)
			require.Contains(t, closed[i].log, onlyMarked)
		}
	}
}

// firewalled are the arrangements with the host firewall. The operator is the first's.
func firewalled(t *testing.T, release *ciliumRelease) (all []*deployment) {
	t.Helper()
	for _, c := range ciliums {
		d := release.deployment(t, c.component, hostFirewall...)
		if c.component != "" {
			d.flags("--log-level=info")
		}
		all = append(all, d)
	}
	all[0].operatorInside(t)
	return all
}

// onlyMarked is what nodeinit logs where no other packets arrive.
const onlyMarked = "the API server answers only with Cilium's mark"

// hostFirewall are the chart's values for it. The agents reach the API server over the
// node's link.
var hostFirewall = []string{"k8sServiceHost=" + cluster.Outside, "hostFirewall.enabled=true", "devices={eth0}"}

// operatorInside gives the operator the address of the API server that no policy of this
// node applies to, as on a node of its own.
func (d *deployment) operatorInside(t *testing.T) {
	t.Helper()
	for _, o := range d.objects {
		if o["kind"] != "Deployment" {
			continue
		}
		for _, e := range at(o, "spec", "template", "spec")["containers"].([]any)[0].(object)["env"].([]any) {
			if e := e.(object); e["name"] == "KUBERNETES_SERVICE_HOST" {
				e["value"] = "10.250.0.2"
				return
			}
		}
	}
	require.Fail(t, "the operator has no address of the API server")
}

// restarts are how long an agent's pod took from its deletion until another one was
// Ready, and what the last one's first container has logged.
type restarts struct {
	took []time.Duration
	log  string
}

// restartsOf restarts the agent three times in each arrangement.
func restartsOf(t *testing.T, all []*deployment) (of []restarts) {
	t.Helper()
	for i, d := range all {
		var r restarts
		applyObjects(t, d.daemonSet())
		pod, _ := d.agentReady(t)
		for range 3 {
			deleted := time.Now()
			require.NoError(t, node.Admin().Delete(t.Context(), "/api/v1/namespaces/kube-system/pods/"+pod))
			var when time.Time
			pod, when = d.agentReady(t)
			r.took = append(r.took, when.Sub(deleted))
		}
		r.log = kubectl(t, "logs", pod, "--namespace=kube-system", "--container="+d.init["name"].(string))
		t.Logf("%s: %v (load %s)", ciliums[i].name, r.took, loadAverage(t))
		of = append(of, r)
		d.remove(t)
	}
	return of
}

// neverStarts applies the DaemonSet without the mark, and waits until its first container
// has failed. Cilium's gives up after a minute, and so does ours if it is told.
func (d *deployment) neverStarts(t *testing.T, name string, ours bool) {
	t.Helper()
	d.flags("--enable-k8s-host-firewall-bypass=false")
	if ours {
		d.flags("--timeout=1m")
	}
	start := time.Now()
	applyObjects(t, d.daemonSet())
	const state = ".status.initContainerStatuses[0].lastState.terminated"
	message := kubectl(t, "wait", "pods", "--namespace=kube-system", "--selector=app="+d.name, "--timeout=180s",
		"--for=jsonpath={"+state+".reason}=Error", "--output=jsonpath={"+state+".message}")
	t.Logf("%s, without a mark, failed after %v: %s", name, time.Since(start).Round(time.Second), message)
	require.Contains(t, message, cluster.Outside+":6443")
}

// leavesAPIServerOut starts the agent, which takes a deleted policy from the node, and
// ends it when it has applied the policy: what it has made on the node stays.
func (d *deployment) leavesAPIServerOut(t *testing.T) {
	t.Helper()
	applyObjects(t, d.daemonSet())
	pod, _ := d.agentReady(t)
	awaitAnswer(t, true)
	require.NoError(t, node.Apply(t.Context(), script(t, "only-names.yaml")))
	awaitAnswer(t, false)
	require.NoError(t, answers(t, kube.Cilium().Mark))
	require.Contains(t, kubectl(t, "exec", pod, "--namespace=kube-system", "--container=cilium-agent", "--", "cilium-dbg", "bpf", "metrics", "list"), "Policy denied")
	d.remove(t)
	require.Error(t, answers(t, 0))
}

// endCilium takes away what is on the node, also where the test has failed, with what its
// own init containers and the operator leave: what nodeinit found and brings back, a mount,
// and the taint of a node whose agent was away when the operator ended.
func endCilium(t *testing.T) {
	t.Helper()
	takeBack(t)
	on(t, "/run/nodeinit cleanup --all-state --force; umount /sys/fs/bpf || true; kubectl taint nodes --all node.cilium.io/agent-not-ready- || true")
}

func deletePolicy(t *testing.T) {
	t.Helper()
	kubectl(t, "delete", "ciliumclusterwidenetworkpolicies", "--all")
}

// awaitAnswer waits until the API server answers packets without a mark, or does not.
func awaitAnswer(t *testing.T, wanted bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		err := answers(t, 0)
		if (err == nil) == wanted {
			return
		}
		require.True(t, time.Now().Before(end), "the API server answers: %v", err)
	}
}

// answers is why the API server does not answer outside the node, to packets with a mark
// unless that is 0.
func answers(t *testing.T, mark uint32) error {
	t.Helper()
	conn, err := connect(t.Context(), cluster.Outside+":6443", mark)
	if err != nil {
		return err
	}
	return conn.Close()
}

// connect connects from the node. The address is no name, so nothing but this thread is
// at work.
func connect(ctx context.Context, address string, mark uint32) (conn net.Conn, err error) {
	dialer := net.Dialer{Timeout: 3 * time.Second, Control: func(_, _ string, c syscall.RawConn) (err error) {
		if controlErr := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, int(mark)) }); controlErr != nil {
			return controlErr
		}
		return err
	}}
	err = hostns.Do(ctx, filepath.Join(node.Proc(), "1"), []string{"net"}, func(ctx context.Context) (err error) {
		conn, err = dialer.DialContext(ctx, "tcp", address)
		return err
	})
	return conn, err
}

// serveOutside makes the API server answer at the other end of the node's link, for as long
// as the test runs. The packets of what hands the connections on do not cross the link.
func serveOutside(t *testing.T) {
	t.Helper()
	var listener net.Listener
	require.NoError(t, hostns.Do(t.Context(), filepath.Join(node.Proc(), "1"), []string{"net"}, func(context.Context) error {
		ns, err := netns.GetFromPath(filepath.Join(node.Root(), cluster.OutsideNamespace))
		if err != nil {
			return err
		}
		defer ns.Close()
		if err := netns.Set(ns); err != nil {
			return err
		}
		listener, err = net.Listen("tcp", cluster.Outside+":6443")
		return err
	}))
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	go handOnAll(t.Context(), listener)
}

// handOnAll hands connections on until the listener is closed.
func handOnAll(ctx context.Context, listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go handOn(ctx, conn)
	}
}

// handOn copies between a connection and one to the API server until one of them ends.
func handOn(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	server, err := connect(ctx, "10.250.0.2:6443", 0)
	if err != nil {
		return // the client sees that its connection has ended
	}
	defer server.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	go func() {
		_, _ = io.Copy(server, conn)
		server.Close()
	}()
	_, _ = io.Copy(conn, server)
}
