// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"bytes"
	"context"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/internal/snapshot"
)

// node is a throw-away node with the files that an administrator would give to nodeinit.
type node struct {
	*bootstraptest.Node
	t       testing.TB
	work    string // the same path inside and outside the node
	plugins string
	conf    string
	source  string
	env     []string // of what runs into files
}

const conflist = `{"cniVersion":"1.0.0","name":"test","plugins":[{"type":"test-cni"}]}` + "\n"

const plugin = `#!/bin/sh
echo '{"cniVersion":"1.0.0","supportedVersions":["0.3.1","1.0.0"]}'
`

// newParallelNode is newNode for a test that runs beside others.
func newParallelNode(t *testing.T) *node {
	t.Helper()
	t.Parallel()
	return newNode(t)
}

func newNode(t testing.TB) *node {
	t.Helper()
	work := t.TempDir()
	n := &node{
		Node: bootstraptest.NewNode(t), t: t, work: work,
		plugins: filepath.Join(work, "plugins"), conf: filepath.Join(work, "test.conflist"),
		source: filepath.Join(work, "config.yaml"),
	}
	require.NoError(t, os.Mkdir(n.plugins, 0o755))
	for _, name := range []string{"test-cni", "loopback"} {
		require.NoError(t, os.WriteFile(filepath.Join(n.plugins, name), []byte(plugin), 0o755))
	}
	require.NoError(t, os.WriteFile(n.conf, []byte(conflist), 0o644))
	require.NoError(t, os.WriteFile(n.source, []byte("cluster-name: test\ncluster-id: \"7\"\n"), 0o644))
	n.write("/run/xtables.lock", "") // as on any node where iptables has ever run
	return n
}

// args are the arguments of apply with all its steps.
func (n *node) args(command string, more ...string) []string {
	return append([]string{
		command, "--source", "file:" + n.source, "--dest", "/run/agent-config",
		"--plugins", n.plugins, "--cni-conf", n.conf,
	}, more...)
}

// run runs the program on the node.
func (n *node) run(args ...string) outcome { return n.runEnv(nil, args...) }

func (n *node) runEnv(env []string, args ...string) outcome {
	n.t.Helper()
	cmd := n.Command(binary, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	return n.outcome(cmd)
}

// outcome runs a command of the node to its end.
func (n *node) outcome(cmd *bootstraptest.Cmd) outcome {
	n.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	return finish(n.t, cmd.Run, &stdout, &stderr)
}

// exits runs the program on the node, and requires an exit status.
func (n *node) exits(code int, args ...string) outcome {
	n.t.Helper()
	return n.exitsEnv(code, nil, args...)
}

func (n *node) exitsEnv(code int, env []string, args ...string) outcome {
	n.t.Helper()
	o := n.runEnv(env, args...)
	require.Equal(n.t, code, o.code, "%s %s: %s%s", env, args, o.stdout, o.stderr)
	return o
}

// ok is exits for a run that succeeds.
func (n *node) ok(args ...string) outcome { n.t.Helper(); return n.exits(0, args...) }

func (n *node) okEnv(env []string, args ...string) outcome {
	n.t.Helper()
	return n.exitsEnv(0, env, args...)
}

// shell runs a script on the node and returns its output.
func (n *node) shell(script string) string {
	n.t.Helper()
	o := n.outcome(n.Command("sh", "-euc", script))
	require.Zero(n.t, o.code, "%s: %s", script, o.stderr)
	return strings.TrimSpace(o.stdout)
}

// serve serves HTTP on the node's own loopback.
func (n *node) serve(handler http.Handler) (address string) {
	n.t.Helper()
	server := httptest.NewUnstartedServer(handler)
	require.NoError(n.t, server.Listener.Close())
	n.do(func() (err error) {
		server.Listener, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	})
	server.Start()
	n.t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// do runs f in the node's namespaces.
func (n *node) do(f func() error) {
	n.t.Helper()
	require.NoError(n.t, n.Do(context.Background(), func(context.Context) error { return f() }))
}

func (n *node) write(path, content string) {
	n.t.Helper()
	n.do(func() error { return os.WriteFile(path, []byte(content), 0o644) })
}

func (n *node) read(path string) (content string) {
	n.t.Helper()
	n.do(func() error {
		raw, err := os.ReadFile(path)
		content = string(raw)
		return err
	})
	return content
}

// state is everything that apply may change on a node, except reports and that there are some.
func (n *node) state() snapshot.Snapshot {
	n.t.Helper()
	s := n.wholeState()
	const dir = "/var/lib/slipway"
	maps.DeleteFunc(s, func(name, _ string) bool { return strings.HasPrefix(name, "file "+dir+"/report.") })
	if s["file "+dir+"/ledger"] == "" {
		return s
	}
	recorded := strings.Join(regexp.MustCompile(`"owner":\{[^}]*\}|\S* \{"kind":.*`).FindAllString(n.read(dir+"/ledger"), -1), "\n")
	s["file "+dir+"/ledger"] = recorded
	if recorded == "" {
		delete(s, "file "+dir)
		delete(s, "file "+dir+"/ledger")
	}
	return s
}

// asItWas returns a check that the node is as it is now, for the end of a test.
func (n *node) asItWas() (check func()) {
	n.t.Helper()
	before := n.state()
	return func() {
		n.t.Helper()
		if !n.t.Failed() {
			require.Empty(n.t, before.Diff(n.state()))
		}
	}
}

// wholeState is state including that report.
func (n *node) wholeState() snapshot.Snapshot {
	n.t.Helper()
	s := snapshot.Snapshot{}
	n.do(s.Node)
	delete(s, "file /run/slipway.lock") // it stays
	s.DropSources()
	return s
}

// machine is the state that no test may change.
func machine(t testing.TB) snapshot.Snapshot {
	t.Helper()
	s := snapshot.Snapshot{}
	require.NoError(t, s.Machine())
	return s
}
