// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/image"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/e2e/cluster"
	"github.com/slipway-dev/slipway/internal/verify/programs"
)

const agentImage = "slipway.test/agent:1"

// containerdEnv names the containerd that the shared nodes have, as for [cluster.Start].
const containerdEnv = "SLIPWAY_E2E_CONTAINERD"

// node is the cluster that the tests share, one after the other. Each takes away
// what it has made.
var node *cluster.Cluster

// unsupported is why this machine has none.
var unsupported error

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (status int) {
	if os.Geteuid() != 0 {
		return m.Run() // every test says why it skips
	}
	ctx := context.Background()
	err := os.RemoveAll("../../../../bin/e2e") // logs of an earlier run
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	node, err = cluster.Start(ctx, os.Stderr, os.Getenv(containerdEnv))
	if errors.Is(err, errors.ErrUnsupported) {
		unsupported = err
		return m.Run() // likewise, or fails
	}
	if err == nil {
		defer func() {
			if err := node.Close(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				status = 1
			}
		}()
		err = importAgent(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// importAgent gives the node the image that the manifests name: nodeinit, the agent
// that embeds the packages, one that only says when it started, CNI plugins and a
// configuration for them. The node itself has nodeinit in /run, to be put right where
// a test has failed.
func importAgent(ctx context.Context) error {
	files, err := agentFiles(ctx)
	if err != nil {
		return err
	}
	nodeinit := files[slices.IndexFunc(files, func(f image.File) bool { return f.Path == "/usr/bin/nodeinit" })]
	if err := os.WriteFile(filepath.Join(node.Root(), "run/nodeinit"), nodeinit.Content, 0o755); err != nil {
		return err
	}
	return node.Import(ctx, agentImage, []string{"/bin/sh"}, files...)
}

// agentFiles are the files of the image. Given ones are added, and replace those with the
// same path.
func agentFiles(ctx context.Context, besides ...image.File) ([]image.File, error) {
	files, err := node.Shell()
	if err != nil {
		return nil, err
	}
	plugins, err := node.Plugins("/cni", "bridge", "ptp", "host-local", "portmap", "loopback")
	if err != nil {
		return nil, err
	}
	chained, err := node.Plugins("/chain", "tuning")
	if err != nil {
		return nil, err
	}
	chained[0].Path = "/chain/agent-cni"
	for name, source := range map[string]string{"/usr/bin/nodeinit": "examples/nodeinit", "/agent": "examples/agent"} {
		content, err := build(ctx, source)
		if err != nil {
			return nil, err
		}
		files = append(files, image.File{Path: name, Mode: 0o755, Content: content})
	}
	conf, err := os.ReadFile("testdata/05-e2e.conflist")
	if err != nil {
		return nil, err
	}
	standIn, err := os.ReadFile("testdata/standin.sh")
	if err != nil {
		return nil, err
	}
	files = append(append(append(files, plugins...), chained...),
		image.File{Path: "/run", Mode: fs.ModeDir | 0o755}, image.File{Path: "/standin", Mode: 0o755, Content: standIn},
		image.File{Path: "/cni-conf/05-e2e.conflist", Mode: 0o644, Content: conf})
	files = slices.DeleteFunc(files, func(f image.File) bool {
		return slices.ContainsFunc(besides, func(b image.File) bool { return b.Path == f.Path })
	})
	return append(files, besides...), nil
}

// build builds a command of this repository.
func build(ctx context.Context, source string) ([]byte, error) {
	path, err := programs.Program{Package: "./" + source}.Build(ctx)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// begin is the head of every test on the cluster.
func begin(t *testing.T) {
	t.Helper()
	needNode(t)
	t.Cleanup(func() {
		saveLogs(t)
		if t.Failed() {
			putRight(t)
		}
	})
}

// putRight removes the leftovers of a failed test: pods first, which need their network
// to end.
func putRight(t *testing.T) {
	t.Helper()
	run := func(n *cluster.Node, step string) {
		if out, err := n.Run(context.WithoutCancel(t.Context()), "sh", "-euc", step); err != nil {
			t.Log("after the test:", err, out)
		}
	}
	run(node.Node, "for kind in daemonsets jobs pods; do kubectl delete $kind --all --all-namespaces --cascade=foreground --timeout=60s; done")
	run(node.Node, "kubectl delete pods --all --all-namespaces --force --timeout=60s")
	run(node.Node, "kubectl taint nodes --all "+taint+"- || true") // there may be none
	for _, n := range node.Nodes {
		run(n, "for agent in cilium flannel slipway-agent; do /run/nodeinit uninstall --agent=$agent --any-owner --force; done")
		run(n, "rm -rf /etc/cni/net.d/*.conflist /var/lib/cni/networks/e2e /var/lib/cni/networks/slipway-agent")
		run(n, "for link in e2e0 slipway0; do [ ! -e /sys/class/net/$link ] || ip link del $link; done")
	}
}

func needNode(t *testing.T) {
	t.Helper()
	testns.Root(t)
	if unsupported != nil {
		testns.Skip(t, unsupported.Error())
	}
}

// saveLogs leaves the logs of everything in bin/e2e, if the test has failed, and shows
// how each ends. What takes pods away at the end of a test calls it first.
func saveLogs(t *testing.T) {
	dir := filepath.Join("../../../../bin/e2e", t.Name())
	if _, err := os.Stat(dir); !t.Failed() || err == nil {
		return
	}
	if err := node.SaveLogs(context.Background(), dir); err != nil {
		t.Log(err)
	}
	ends, err := exec.Command("find", dir, "-type", "f", "-exec", "tail", "--verbose", "--lines=10", "{}", "+").CombinedOutput()
	t.Logf("logs are in %s (%v)\n%s", dir, err, ends)
}

// on runs a script on the first node and returns what it printed.
func on(t *testing.T, script string) string {
	t.Helper()
	return onNode(t, node.Node, script)
}

func onNode(t *testing.T, n *cluster.Node, script string) string {
	t.Helper()
	out, err := n.Run(context.WithoutCancel(t.Context()), "sh", "-euc", script)
	require.NoError(t, err)
	return out
}

// script returns one of testdata.
func script(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return string(text)
}

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := node.Kubectl(context.WithoutCancel(t.Context()), args...)
	require.NoError(t, err)
	return out
}
