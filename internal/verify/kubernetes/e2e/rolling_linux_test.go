// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/e2e/cluster"
)

const (
	rollouts = 20
	lookEach = 5 * time.Millisecond
)

// However an agent is updated, the configuration always exists, and no pod loses
// a packet: the older pod's preStop hook does nothing where its gate is off, nor where
// the node is the newer pod's by then; an agent that embeds the packages asks whether it
// comes back.
func TestPLAN11_RollingUpdates(t *testing.T) {
	testns.SkipShort(t, "a minute and a half each")
	begin(t)
	for name, tc := range map[string]struct {
		agent    func(*testing.T) *deployment
		conf     string // its configuration
		isUndone bool   // with the last pod
	}{
		"the gate is off":          {gated("false"), "05-e2e.conflist", false},
		"the gate is on, by surge": {surging(gated("true")), "05-e2e.conflist", true},
		"the agent decides":        {embedding, "10-slipway-agent.conflist", true},
	} {
		t.Run(name, func(t *testing.T) {
			begin(t)
			d := tc.agent(t)
			d.apply(t)
			d.ready(t)
			nodeReady(t, "True")
			address := pingPods(t)
			watch := watchConf(tc.conf)
			ping := startPing(t, address)

			for i := range rollouts {
				kubectl(t, "patch", "daemonset", d.name, "--namespace=kube-system", "--type=merge",
					fmt.Sprintf(`--patch={"spec":{"template":{"metadata":{"annotations":{"rollout":"%d"}}}}}`, i))
				kubectl(t, "rollout", "status", "daemonset/"+d.name, "--namespace=kube-system", "--timeout=120s")
			}
			looks, missing := watch.end()
			t.Logf("%d rollouts, %d looks: missing %d times; %s", rollouts, looks, missing, ping())
			require.Zero(t, missing)
			require.Greater(t, looks, rollouts)

			removePingPods(t) // without a configuration the runtime could not
			watch = watchConf(tc.conf)
			d.remove(t)
			_, missing = watch.end()
			require.Equal(t, tc.isUndone, missing > 0, "the last pod takes it along or not, and this test sees it")
			uninstaller(t).uninstall(t)
		})
	}
}

// gated is an agent without an init container, whose preStop hook is ours.
func gated(gate string) func(*testing.T) *deployment {
	return func(t *testing.T) *deployment {
		t.Helper()
		d := entrypoint(t)
		d.objects = append(d.objects[:len(d.objects)-1], configMap("cilium-config", "cni-uninstall", gate))
		// It needs what nodeinit does: it is another process in the container.
		d.init["lifecycle"] = object{"preStop": object{"exec": object{"command": []any{
			"nodeinit", "uninstall-cni", "--agent=cilium", "--keep-plugins", "--config-dir=/tmp/cilium/config-map", "--host-proc=/hostproc",
		}}}}
		return d
	}
}

// surging starts the newer pod, and has it become the agent, before the older one ends.
func surging(agent func(*testing.T) *deployment) func(*testing.T) *deployment {
	return func(t *testing.T) *deployment {
		t.Helper()
		d := agent(t)
		at(d.daemonSet(), "spec")["updateStrategy"] = object{"rollingUpdate": object{"maxSurge": 1, "maxUnavailable": 0}}
		d.init["readinessProbe"] = object{"periodSeconds": 1, "exec": object{"command": []any{"/bin/sh", "-c", "read name < /proc/1/comm && [ $name = standin ]"}}}
		return d
	}
}

// watched is a configuration on the node that is looked at again and again.
type watched struct {
	stop chan struct{}
	done chan [2]int
}

// watchConf watches whether the configuration exists.
func watchConf(name string) *watched {
	w := &watched{make(chan struct{}), make(chan [2]int, 1)}
	go func() {
		var looks, missing int
		for tick := time.NewTicker(lookEach); ; {
			select {
			case <-w.stop:
				tick.Stop()
				w.done <- [2]int{looks, missing}
				return
			case <-tick.C:
			}
			looks++
			if !isThere(name) {
				missing++
			}
		}
	}()
	return w
}

// isThere reports whether the node has the configuration.
func isThere(conf string) bool {
	_, err := os.Lstat(filepath.Join(node.Root(), "etc/cni/net.d", conf))
	if err != nil && !os.IsNotExist(err) {
		fmt.Fprintln(os.Stderr, err)
	}
	return err == nil
}

func (w *watched) end() (looks, missing int) {
	close(w.stop)
	counts := <-w.done
	return counts[0], counts[1]
}

// pingPods starts two pods on the network and returns the address of the second.
func pingPods(t *testing.T) string {
	t.Helper()
	t.Cleanup(func() { removePingPods(t) })
	var pods []object
	for _, name := range []string{"one", "other"} {
		pods = append(pods, waitingPod(name, object{"app": "ping"}))
	}
	applyObjects(t, pods...)
	kubectl(t, "wait", "pods", "--selector=app=ping", "--for=condition=Ready", "--timeout=60s")
	return kubectl(t, "get", "pod", "other", "--output=jsonpath={.status.podIP}")
}

func removePingPods(t *testing.T) {
	t.Helper()
	kubectl(t, "delete", "pods", "--selector=app=ping", "--ignore-not-found")
	kubectl(t, "wait", "--for=delete", "pods", "--selector=app=ping", "--timeout=60s")
}

var (
	sequence    = regexp.MustCompile(`seq=(\d+) `)
	transmitted = regexp.MustCompile(`(\d+) packets transmitted`)
)

// startPing pings from one pod to the other until the returned function is called,
// which checks that none was lost, and returns how many there were. Only the last may
// be on its way by then.
func startPing(t *testing.T, address string) func() string {
	t.Helper()
	ended := make(chan string, 1)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Minute)
	go func() {
		defer cancel()
		out, err := node.Kubectl(ctx, "exec", "one", "--", "sh", "-c",
			fmt.Sprintf("ping -i 0.05 -W 2 %s > /tmp/ping & echo $! > /tmp/pid; wait; cat /tmp/ping", address))
		if err != nil {
			out += err.Error()
		}
		ended <- out
	}()
	return func() string {
		t.Helper()
		kubectl(t, "exec", "one", "--", "sh", "-c", "kill -INT $(cat /tmp/pid)")
		out := <-ended
		answers := sequence.FindAllStringSubmatch(out, -1)
		for i, answer := range answers {
			require.Equal(t, strconv.Itoa(i), answer[1], "no packet is lost")
		}
		sent := transmitted.FindStringSubmatch(out)
		require.NotNil(t, sent, out)
		count, err := strconv.Atoi(sent[1])
		require.NoError(t, err)
		require.LessOrEqual(t, count-len(answers), 1)
		return fmt.Sprintf("%d packets, none lost", count)
	}
}

// waitingPod waits for its end and then ends at once, as sleep does not where it is the
// container's first process.
func waitingPod(name string, labels object) object {
	const untilEnded = "trap 'exit 0' TERM; sleep infinity & wait"
	return object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name, "labels": labels}, "spec": object{
		"automountServiceAccountToken": false,
		"containers":                   []any{object{"name": "wait", "image": cluster.Busybox, "command": []any{"sh", "-c", untilEnded}}},
	}}
}
