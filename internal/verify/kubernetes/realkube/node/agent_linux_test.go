// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package node_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/cri/critest"
	"github.com/slipway-dev/slipway/internal/snapshot"
	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
	"github.com/slipway-dev/slipway/internal/verify/process"
	"github.com/slipway-dev/slipway/internal/verify/programs"
)

// host is a throw-away node with a container runtime, beside the API server. The agent enters
// it through its /proc, as a pod does.
type host struct {
	*bootstraptest.Node
	t *testing.T
}

func newHost(t *testing.T) host {
	t.Helper()
	h := host{bootstraptest.NewNode(t), t}
	l, err := h.Listen("/run/containerd/containerd.sock")
	require.NoError(t, err)
	critest.Serve(t, l, critest.Runtime{Sandboxes: func() []string { return []string{"alive"} }})
	return h
}

func (h host) do(f func() error) {
	h.t.Helper()
	require.NoError(h.t, h.Do(context.Background(), func(context.Context) error { return f() }))
}

func (h host) write(path, content string) {
	h.t.Helper()
	h.do(func() error {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
		ago := time.Now().Add(-time.Hour)
		return os.Chtimes(path, ago, ago)
	})
}

func (h host) has(path string) (found bool) {
	h.t.Helper()
	h.do(func() error {
		_, err := os.Lstat(path)
		if found = err == nil; os.IsNotExist(err) {
			return nil
		}
		return err
	})
	return found
}

const conflist = "/etc/cni/net.d/10-slipway-agent.conflist"

func TestRDY4_TheAgentFromItsStartToItsEnd(t *testing.T) {
	const name = "whole"
	if _, err := os.Stat("/usr/lib/cni/host-local"); err != nil {
		testns.Skip(t, "the CNI plugins are missing: make tools")
	}
	createNode(t, name, fields{"zone": "a"}, taint(notReady, "", "NoSchedule"), taint("other", "", "NoSchedule"))
	kubeconfig, err := realkube.WriteKubeconfig(t.TempDir(), server.URL, server.CAPEM, agentOn(t, name))
	require.NoError(t, err)
	binary, err := programs.Program{Package: "./examples/agent"}.Build(t.Context())
	require.NoError(t, err)

	h := newHost(t)
	store := "/var/lib/cni/networks/slipway-agent/"
	h.write(store+"10.9.0.2", "alive\r\neth0")
	h.write(store+"10.9.0.3", "gone\r\neth0")
	h.write(store+"10.9.0.4", "")
	before := h.state()
	start := func(until string) (stop func() string) {
		cmd := exec.Command(binary, "--host-proc="+h.Proc(), "--kubeconfig="+kubeconfig, "--node="+name, "--taint="+notReady,
			"--daemonset=kube-system/agent", "--gates=file:/run/go", "--cni=ptp", "--subnet=10.9.0.0/24", "--plugins=/usr/lib/cni",
			"--health=127.0.0.1:0", "--interval=200ms", "--dest="+filepath.Join(t.TempDir(), "config"), "--owner=me")
		agent, err := process.Start("agent", cmd, filepath.Join(t.TempDir(), "log"), nil)
		require.NoError(t, err)
		t.Cleanup(func() { agent.End(syscall.SIGKILL) }) // unless it has stopped
		eventually(t, func(context.Context) error {
			if text := agent.Log(); !strings.Contains(text, until) {
				return errors.New(text)
			}
			return nil
		})
		return func() string {
			agent.End(syscall.SIGTERM) // it may already have ended
			require.NoError(t, agent.Wait(), "%s", agent.Log())
			return agent.Log()
		}
	}
	untilReady := func() {
		eventually(t, func(context.Context) error {
			if keys := taintsOf(t, name); len(keys) != 1 {
				return fs.ErrExist
			}
			return nil
		})
	}

	stop := start("the file /run/go")
	require.False(t, h.has(conflist))
	require.Equal(t, []string{notReady, "other"}, taintsOf(t, name))
	h.write("/run/go", "")
	untilReady()
	require.Equal(t, "10.9.0.0/24", getNode(t, name).GetAnnotations()["agent.example.org/subnet"])
	require.True(t, h.has(conflist))
	require.True(t, h.has("/opt/cni/bin/host-local"))
	for file, there := range map[string]bool{"10.9.0.2": true, "10.9.0.3": false, "10.9.0.4": false, "10.9.0.4.corrupt": true} {
		require.Equal(t, there, h.has(store+file), file)
	}

	// The cluster is away, and the node is repaired nevertheless.
	server.KillAPIServer()
	h.do(func() error { return os.Remove(conflist) })
	eventually(t, func(context.Context) error {
		if !h.has(conflist) {
			return fs.ErrNotExist
		}
		return nil
	})
	require.NoError(t, server.StartAPIServer(t.Context()))

	require.Regexp(t, regexp.MustCompile(`asked to end" decision="?restart \(restarting\)`), stop())
	require.True(t, h.has(conflist), "an agent that comes back leaves the node as it is")

	// The DaemonSet no longer selects the node.
	stop = start("health probe")
	path := places["DaemonSet"] + "agent"
	selector := func(zone any) {
		require.NoError(t, server.Admin().Merge(t.Context(), path, fields{"spec": fields{"template": fields{"spec": fields{"nodeSelector": fields{"zone": zone}}}}}))
	}
	selector("elsewhere")
	defer selector(nil)
	require.Regexp(t, regexp.MustCompile(`decision="?uninstall \(not-matching\)`), stop())
	require.False(t, h.has(conflist))
	require.False(t, h.has("/var/lib/slipway"))
	require.Empty(t, before.Diff(h.state()))
}

// state is everything the agent changes on a node, except addresses.
func (h host) state() snapshot.Snapshot {
	h.t.Helper()
	s := snapshot.Snapshot{}
	h.do(func() error { return errors.Join(s.Files("/etc", "/opt"), s.Mounts(), s.Links(), s.Values("net/ipv4")) })
	return s
}
