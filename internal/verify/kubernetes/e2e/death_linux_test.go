// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/e2e/cluster"
)

// modeEnv makes the test binary a program that starts a cluster and waits to be
// killed.
const modeEnv = "SLIPWAY_E2E_STARTER"

func starter(string) int {
	c, err := cluster.Start(context.Background(), os.Stderr, cluster.Options{})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(c.Proc())
	select {}
}

// machine is what a cluster must leave as it is.
func machine(t *testing.T) map[string]string {
	t.Helper()
	seen := map[string]string{}
	for name, command := range map[string]string{
		"mounts": "cat /proc/self/mountinfo", "links": "ip -o link show", "rules": "nft -s list ruleset; iptables-legacy-save 2>/dev/null | grep -v ^# || true",
		"sysctls": "grep -r . /proc/sys/kernel/panic /proc/sys/kernel/panic_on_oops /proc/sys/vm/overcommit_memory /proc/sys/net/ipv4/ip_forward",
		"files":   "ls -laR --time-style=+ /etc/cni /opt/cni /etc/containerd /etc/kubernetes /var/lib/containerd /var/lib/kubelet /var/lib/cni /run/containerd 2>&1 || true",
	} {
		out, err := exec.Command("sh", "-c", command).CombinedOutput()
		require.NoError(t, err, string(out))
		seen[name] = string(out)
	}
	return seen
}

// cgroups are the directories of a node's cgroup, in every hierarchy.
func cgroups(t *testing.T, name string) []string {
	t.Helper()
	found, err := filepath.Glob("/sys/fs/cgroup/*/" + name)
	require.NoError(t, err)
	unified, err := filepath.Glob("/sys/fs/cgroup/" + name)
	require.NoError(t, err)
	return append(found, unified...)
}

func TestAClusterEndsWithItsStarter(t *testing.T) {
	needNode(t)
	before := machine(t)
	start := exec.Command("/proc/self/exe")
	start.Env = append(os.Environ(), modeEnv+"=1")
	start.Stderr = os.Stderr
	out, err := start.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, start.Start())
	proc, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	init := filepath.Join(strings.TrimSpace(proc), "1")
	require.DirExists(t, init, proc)
	name := cgroupName(t, init)
	require.NotEmpty(t, cgroups(t, name))
	require.NotEmpty(t, processesIn(t, name))

	require.NoError(t, start.Process.Kill())
	require.ErrorContains(t, start.Wait(), "signal: killed")
	require.Eventually(t, func() bool { return len(processesIn(t, name)) == 0 }, 20*time.Second, 10*time.Millisecond)
	require.NoDirExists(t, init)

	next, err := testns.StartNode(t.Context(), testns.NodeOptions{})
	require.NoError(t, err)
	require.NoError(t, next.Close())
	require.Empty(t, cgroups(t, name), "the next node takes away the cgroups")
	require.Equal(t, before, machine(t))
}

// cgroupName is the name of the cgroup that the process is in.
func cgroupName(t *testing.T, process string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(process, "cgroup"))
	require.NoError(t, err)
	_, path, _ := strings.Cut(string(text), "0::/")
	require.Contains(t, path, "slipway-node-")
	name, _, _ := strings.Cut(strings.TrimSpace(path), "/") // it may be in one below
	return name
}

// processesIn are the machine's processes in the node's cgroups.
func processesIn(t *testing.T, name string) (found []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cgroup")
	require.NoError(t, err)
	for _, path := range all {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "/"+name) {
			found = append(found, path)
		}
	}
	return found
}
