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

	"github.com/slipway-dev/slipway/internal/verify/kubernetes/e2e/cluster"
)

// lookEach is how often a configuration is looked at.
const lookEach = 5 * time.Millisecond

// watchConf looks again and again whether the first node has the configuration, until the
// returned function is called.
func watchConf(name string) (end func() (looks, missing int)) {
	stop, done := make(chan struct{}), make(chan [2]int)
	go func() {
		var looks, missing int
		tick := time.NewTicker(lookEach)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				done <- [2]int{looks, missing}
				return
			case <-tick.C:
			}
			looks++
			if _, err := os.Lstat(filepath.Join(node.Root(), "etc/cni/net.d", name)); err != nil {
				missing++
			}
		}
	}()
	return func() (looks, missing int) {
		close(stop)
		counts := <-done
		return counts[0], counts[1]
	}
}

// pingPods starts two pods on the first node and returns the address of the second.
func pingPods(t *testing.T) string {
	t.Helper()
	podOn(t, "one", cluster.NodeName)
	return podOn(t, "other", cluster.NodeName)
}

func removePingPods(t *testing.T) {
	t.Helper()
	kubectl(t, "delete", "pods", "--selector=app=ping", "--timeout=120s")
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
	return startPingFrom(t, "one", address)
}

// startPingFrom pings from a pod. It may ping several addresses.
func startPingFrom(t *testing.T, pod, address string) func() string {
	t.Helper()
	ended := make(chan string, 1)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Minute)
	go func() {
		defer cancel()
		out, err := node.Kubectl(ctx, "exec", pod, "--", "sh", "-c",
			fmt.Sprintf("ping -i 0.05 -W 2 %[1]s > /tmp/%[1]s & echo $! > /tmp/%[1]s.pid; wait; cat /tmp/%[1]s", address))
		if err != nil {
			out += err.Error()
		}
		ended <- out
	}()
	return func() string {
		t.Helper()
		kubectl(t, "exec", pod, "--", "sh", "-c", "kill -INT $(cat /tmp/"+address+".pid)")
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

// podOn starts a pod on the node, and returns its address.
func podOn(t *testing.T, name, nodeName string) string {
	t.Helper()
	t.Cleanup(func() { removePod(t, name) })
	pod := waitingPod(name, object{"app": "ping"})
	at(pod, "spec")["nodeName"] = nodeName
	applyObjects(t, pod)
	return podReady(t, name, 0)
}

// podReady waits for a pod whose container was started again so often, and returns its address.
func podReady(t *testing.T, name string, restarts int) string {
	t.Helper()
	kubectl(t, "wait", "pod", name, "--timeout=120s", fmt.Sprintf("--for=jsonpath={.status.containerStatuses[0].restartCount}=%d", restarts))
	kubectl(t, "wait", "pod", name, "--timeout=120s", "--for=condition=Ready")
	return kubectl(t, "get", "pod", name, "--output=jsonpath={.status.podIP}")
}

// reaches has a pod ping an address.
func reaches(t *testing.T, pod, address string) {
	t.Helper()
	require.Contains(t, kubectl(t, "exec", pod, "--", "ping", "-c", "3", "-i", "0.2", "-W", "10", address), " 0% packet loss")
}

func removePod(t *testing.T, name string) {
	t.Helper()
	kubectl(t, "delete", "pod", name, "--ignore-not-found", "--timeout=120s")
}
