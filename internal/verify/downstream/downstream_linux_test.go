// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package downstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/internal/snapshot"
	"github.com/slipway-dev/slipway/internal/testns"
)

// agent is the program of testdata, on a node of its own.
type agent struct {
	*bootstraptest.Node
	t                *testing.T
	program, plugins string
}

// build builds the program in a module of its own, outside of this tree.
func build(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/agent")))
	const module = "github.com/slipway-dev/slipway"
	mod := fmt.Sprintf("module acme.example/agent\n\ngo 1.25\n\nrequire %s v0.0.0\n\nreplace %[1]s => %s\n", module, root)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644))
	for _, args := range [][]string{{"mod", "tidy"}, {"vet", "."}, {"build", "-o", "agent", "."}} {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0", "PWD="+dir)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	return filepath.Join(dir, "agent")
}

func newAgent(t *testing.T, program string) *agent {
	a := &agent{Node: bootstraptest.NewNode(t), t: t, program: program, plugins: t.TempDir()}
	plugin := "#!/bin/sh\necho '{\"cniVersion\":\"1.0.0\",\"supportedVersions\":[\"1.0.0\"]}'\n"
	require.NoError(t, os.WriteFile(filepath.Join(a.plugins, "acme-cni"), []byte(plugin), 0o755))
	require.NoError(t, a.Do(t.Context(), func(context.Context) error {
		return errors.Join(
			os.MkdirAll("/etc/cni/net.d", 0o755), os.MkdirAll("/opt/cni/bin", 0o755), os.MkdirAll("/etc/sysctl.d", 0o755), os.MkdirAll("/var/lib", 0o755),
			os.WriteFile("/etc/cni/net.d/10-other.conflist", []byte(`{"cniVersion":"1.0.0","name":"other","plugins":[{"type":"other"}]}`), 0o644),
			os.WriteFile("/opt/cni/bin/acme-cni", []byte("an older version"), 0o755),
			os.WriteFile("/proc/sys/net/ipv4/conf/all/rp_filter", []byte("2"), 0),
		)
	}))
	return a
}

func (a *agent) command(owner, without, verb string) *bootstraptest.Cmd {
	cmd := a.Command(a.program, verb)
	cmd.Env = append(os.Environ(), "OWNER="+owner, "WITHOUT="+without, "PLUGINS="+a.plugins, "ACME_MTU=1450")
	return cmd
}

// run runs one verb to its end.
func (a *agent) run(owner, without, verb string) (code int, output string) {
	a.t.Helper()
	out, err := a.command(owner, without, verb).CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), string(out)
	}
	require.NoError(a.t, err)
	return 0, string(out)
}

func (a *agent) succeeds(owner, without, verb string) string {
	a.t.Helper()
	code, out := a.run(owner, without, verb)
	require.Zero(a.t, code, out)
	return out
}

// state is all of the node that the agent touches, but for the locks that stay.
func (a *agent) state() snapshot.Snapshot {
	a.t.Helper()
	s := snapshot.Snapshot{}
	require.NoError(a.t, a.Do(a.t.Context(), func(context.Context) error {
		name, err := os.Hostname()
		s["hostname"] = name
		return errors.Join(err, s.Files("/etc", "/opt", "/run", "/var"), s.Mounts(), s.Values("net/ipv4", "net/ipv6"))
	}))
	delete(s, "file /run/slipway.lock")
	return s
}

// running is a verb that goes on.
type running struct {
	*bootstraptest.Cmd
	stdin io.Writer
	out   *bufio.Reader
}

func (a *agent) start(owner, verb string) *running {
	a.t.Helper()
	cmd := a.command(owner, "", verb)
	in, stdin, err := os.Pipe()
	require.NoError(a.t, err)
	stdout, out, err := os.Pipe()
	require.NoError(a.t, err)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, out
	require.NoError(a.t, cmd.Start())
	require.NoError(a.t, errors.Join(in.Close(), out.Close()))
	a.t.Cleanup(func() { _ = stdin.Close(); _ = stdout.Close() })
	return &running{cmd, stdin, bufio.NewReader(stdout)}
}

// applied waits until reconcile says that it has applied.
func (r *running) applied(t *testing.T) {
	t.Helper()
	var said strings.Builder
	for {
		line, err := r.out.ReadString('\n')
		said.WriteString(line)
		require.NoError(t, err, said.String())
		if line == "applied\n" {
			return
		}
	}
}

// ends waits for it, and returns its exit status and what it said last.
func (r *running) ends(t *testing.T) (code int, said string) {
	t.Helper()
	rest, err := io.ReadAll(r.out)
	require.NoError(t, err)
	if exit := (*exec.ExitError)(nil); errors.As(r.Wait(), &exit) {
		return exit.ExitCode(), string(rest)
	}
	return 0, string(rest)
}

func TestPLAN11_SomebodyElsesAgent(t *testing.T) {
	testns.Root(t)
	a := newAgent(t, build(t))
	before := a.state()

	old := a.start("pod-a", "reconcile")
	old.applied(t)
	guard := a.start("pod-a", "guard")
	name := a.state()["hostname"]
	require.Equal(t, "acme-node", name)
	require.Contains(t, a.succeeds("pod-a", "", "apply"), "8 unchanged", "applied twice, nothing changes")

	// The rolling update: the newer pod applies, and has one step less.
	out := a.succeeds("pod-b", "forwarding", "apply")
	require.Contains(t, out, "net.ipv4.ip_forward", "what is switched off is undone")
	newer := a.state()
	require.Equal(t, before["sysctl net/ipv4/ip_forward"], newer["sysctl net/ipv4/ip_forward"])
	require.Empty(t, changed(before, newer, "net/ipv4/conf/lo", "net/ipv6"))

	_, err := fmt.Fprintln(old.stdin)
	require.NoError(t, err)
	code, said := old.ends(t)
	require.Equal(t, 3, code, "the older one's reconcile ends")
	require.Contains(t, said, "no longer this one's")
	code, said = guard.ends(t)
	require.Equal(t, 3, code, "and so does its guard: %s", said)
	for _, verb := range []string{"apply", "revert"} {
		code, said = a.run("pod-a", "", verb)
		require.Equal(t, 3, code)
		require.Contains(t, said, `"pod-b" (generation 2`)
	}
	require.Empty(t, newer.Diff(a.state()), "the older one has changed nothing")

	// What is no longer as it should be, the newer one puts right.
	require.NoError(t, a.Do(t.Context(), func(context.Context) error { return os.Remove("/etc/cni/net.d/05-acme.conflist") }))
	a.succeeds("pod-b", "forwarding", "apply")
	repaired := a.state()
	repaired["file /var/lib/acme/journal.json"] = newer["file /var/lib/acme/journal.json"]
	require.Empty(t, newer.Diff(repaired))

	a.succeeds("pod-b", "forwarding", "revert")
	require.Empty(t, before.Diff(a.state()), "the node is as before")
}

// changed lists the values that differ and whose name has one of the prefixes.
func changed(before, after snapshot.Snapshot, prefixes ...string) (lines []string) {
	for _, line := range before.Diff(after) {
		for _, prefix := range prefixes {
			if strings.Contains(line, "sysctl "+prefix) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

func TestPLAN12_EverythingIsUndoneWithoutAnyPlan(t *testing.T) {
	testns.Root(t)
	a := newAgent(t, build(t))
	before := a.state()
	a.succeeds("pod-a", "", "apply")
	code, said := a.run("", "", "revert")
	require.Equal(t, 3, code, "by nobody in particular: refused")
	require.Contains(t, said, "nobody in particular")
	out := a.succeeds("admin", "", "uninstall")
	require.Contains(t, out, "hostname set the hostname back")
	require.Empty(t, before.Diff(a.state()))

	guarding := time.Now()
	g := a.start("pod-a", "guard")
	code, said = g.ends(t)
	require.NotZero(t, code, said)
	require.Less(t, time.Since(guarding), time.Minute)
}
