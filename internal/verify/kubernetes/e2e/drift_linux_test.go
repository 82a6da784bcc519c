// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package e2e_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/testns"
)

// The DaemonSet that watches for drift, as it is shipped but for its interval: it says on
// the Node what has drifted, with the rights that it has, and changes nothing. What it
// takes, by its container's cgroup, is logged.
func TestRDY5_ADaemonSetWatchesForDrift(t *testing.T) {
	testns.SkipShort(t, "a minute")
	begin(t)
	before := prepared(t)
	d := withComponent(t, "nodeinit.yaml", "report").standIn()
	d.apply(t)
	d.ready(t)
	watch := load(t, "drift.yaml")
	watch.flags(ownNetwork...)
	watch.flags("--every=1s")
	watch.apply(t)
	w := startWatching(t, watch.ready(t))
	says := func(status, reason string) {
		t.Helper()
		kubectl(t, "wait", "node", "--all", "--for=condition=SlipwayCiliumReady="+status, "--timeout=60s")
		require.Equal(t, reason, kubectl(t, "get", "nodes", `--output=jsonpath={.items[*].status.conditions[?(@.type=="SlipwayCiliumReady")].reason}`))
	}
	w.looks(t, 2)
	says("True", "Ready")
	on(t, "rm /opt/cni/bin/portmap")
	says("False", "Drifted")
	require.NoFileExists(t, node.Root()+"/opt/cni/bin/portmap")
	kubectl(t, "delete", "pods", "--selector=app=agent", "--namespace=kube-system")
	says("True", "Ready")
	w.logCost(t)

	watch.remove(t)
	d.remove(t)
	uninstaller(t).uninstall(t)
	nodeReady(t, "False")
	settles(t, before, "the node is as it was before", "var/lib/cni")
}

// watching is a pod that looks again and again, and its container's cgroup.
type watching struct{ pod, container string }

func startWatching(t *testing.T, pod string) watching {
	t.Helper()
	id := kubectl(t, "get", "pod", pod, "--namespace=kube-system", "--output=jsonpath={.status.containerStatuses[0].containerID}")
	return watching{pod, strings.TrimPrefix(id, "containerd://")}
}

// looks waits for so many more, and returns how many there were.
func (w watching) looks(t *testing.T, more int) int {
	t.Helper()
	count := func() int {
		return strings.Count(kubectl(t, "logs", w.pod, "--namespace=kube-system"), " steps: ")
	}
	first := count()
	require.Eventually(t, func() bool { return count() >= first+more }, 2*time.Minute, time.Second)
	return count() - first
}

// logCost logs what some looks take.
func (w watching) logCost(t *testing.T) {
	t.Helper()
	before := w.processor(t)
	looks := w.looks(t, 20)
	look := (w.processor(t) - before) / time.Duration(looks)
	const interval = 5 * time.Minute * 9 / 10 // of the manifest, on average
	t.Logf("%d looks: %v of processor time each; with one every five minutes, %.2f millicores", looks, look.Round(100*time.Microsecond), 1000*look.Seconds()/interval.Seconds())
	stat := w.value(t, "memory.stat")
	mib := func(text string) string {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		require.NoError(t, err, text)
		return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + " MiB"
	}
	of := func(names string) string {
		m := regexp.MustCompile(`(?m)^(` + names + `) (\d+)$`).FindStringSubmatch(stat)
		require.NotNil(t, m, stat)
		return mib(m[2])
	}
	t.Logf("memory: %s now, of which %s its own and %s of files, at most %s",
		mib(w.value(t, "memory.usage_in_bytes", "memory.current")), of("total_rss|anon"), of("total_cache|file"), mib(w.value(t, "memory.max_usage_in_bytes", "memory.peak")))
}

// processor is what its processes have taken so far.
func (w watching) processor(t *testing.T) time.Duration {
	t.Helper()
	text := w.value(t, "cpuacct.usage", "cpu.stat")
	unit := time.Nanosecond
	if m := regexp.MustCompile(`usage_usec (\d+)`).FindStringSubmatch(text); m != nil {
		text, unit = m[1], time.Microsecond
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	require.NoError(t, err, text)
	return time.Duration(n) * unit
}

// value is that of the first file that the cgroup has, in version 1 or 2.
func (w watching) value(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path := strings.TrimSpace(on(t, "find /sys/fs/cgroup -path '*"+w.container+"/"+name+"'")); path != "" {
			return on(t, "cat "+path)
		}
	}
	require.Fail(t, "the container's cgroup has none of these", names)
	return ""
}
