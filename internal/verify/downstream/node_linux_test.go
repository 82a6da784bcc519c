// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/internal/snapshot"
)

var outside string // the module in which the agent is built

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if outside, err = os.MkdirTemp("", "downstream-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(outside)
		return m.Run()
	}())
}

// build builds the agent as other projects do: in a module of its own, outside this tree.
var build = sync.OnceValues(func() (program string, err error) {
	if err := copySources(outside); err != nil {
		return "", err
	}
	for _, args := range [][]string{{"mod", "tidy"}, {"vet", "."}, {"build", "-o", "agent", "."}} {
		cmd := exec.Command("go", args...)
		cmd.Dir = outside
		cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0", "PWD="+outside)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go %s: %w: %s", args, err, out)
		}
	}
	return filepath.Join(outside, "agent"), nil
})

// copySources copies the agent, and writes its go.mod.
func copySources(dir string) error {
	root, err := filepath.Abs("../../..")
	if err != nil {
		return err
	}
	const module = "github.com/slipway-dev/slipway"
	mod := fmt.Sprintf("module acme.example/agent\n\ngo 1.25\n\nrequire %s v0.0.0\n\nreplace %[1]s => %s\n", module, root)
	tests, err := filepath.Glob("*_test.go")
	errs := []error{err, os.CopyFS(dir, os.DirFS("."))}
	for _, name := range tests {
		errs = append(errs, os.Remove(filepath.Join(dir, name)))
	}
	return errors.Join(append(errs, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644))...)
}

// real is a node on the running kernel.
type real struct {
	*bootstraptest.Node
	t                *testing.T
	program, plugins string
}

func newReal(t *testing.T) real {
	t.Helper()
	n := real{Node: bootstraptest.NewNode(t), t: t, plugins: t.TempDir()}
	var err error
	n.program, err = build()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(n.plugins, "acme-cni"), []byte(plugin), 0o755))
	n.do(func() error {
		return errors.Join(prepareFiles("/"), os.WriteFile("/proc/sys/net/ipv4/conf/all/rp_filter", []byte("2"), 0))
	})
	return n
}

// do runs an administrator's commands on the node.
func (n real) do(f func() error) {
	n.t.Helper()
	require.NoError(n.t, n.Do(n.t.Context(), func(context.Context) error { return f() }))
}

// state describes everything on the node that the agent changes, except its journal.
func (n real) state() snapshot.Snapshot {
	n.t.Helper()
	s := snapshot.Snapshot{}
	n.do(func() error {
		name, err := os.Hostname()
		s["hostname"] = name
		return errors.Join(err, s.Files("/etc", "/opt", "/run", "/var"), s.Mounts(), s.Values("net/ipv4", "net/ipv6"))
	})
	delete(s, "file /var/lib/acme/agent.journal")
	return timeless(s, "/")
}

func (n real) command(owner, verb string) *bootstraptest.Cmd {
	cmd := n.Command(n.program, verb)
	cmd.Env = append(os.Environ(), "OWNER="+owner, "PLUGINS="+n.plugins)
	return cmd
}

// run runs a verb to its end, and returns its exit status and its error message.
func (n real) run(owner, verb string) (o outcome, code int, said string) {
	n.t.Helper()
	out, err := n.command(owner, verb).Output()
	exit := (*exec.ExitError)(nil)
	if errors.As(err, &exit) {
		return o, exit.ExitCode(), string(exit.Stderr)
	}
	require.NoError(n.t, err)
	require.NoError(n.t, json.Unmarshal(out, &o))
	return o, 0, ""
}

func (n real) succeeds(owner, verb string) outcome {
	n.t.Helper()
	o, code, said := n.run(owner, verb)
	require.Zero(n.t, code, said)
	return o
}

// refused runs a verb for an owner that does not own the node.
func (n real) refused(owner, verb, says string) {
	n.t.Helper()
	_, code, said := n.run(owner, verb)
	require.Equal(n.t, 3, code, "%s: %s", verb, said)
	require.Contains(n.t, said, says)
}

// pod is an agent that keeps running.
type pod struct {
	*bootstraptest.Cmd
	t      *testing.T
	stdin  io.WriteCloser
	out    *json.Decoder
	errors *strings.Builder
}

func (n real) start(owner, verb string) pod {
	n.t.Helper()
	cmd, said := n.command(owner, verb), &strings.Builder{}
	in, stdin, err := os.Pipe()
	require.NoError(n.t, err)
	stdout, out, err := os.Pipe()
	require.NoError(n.t, err)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, said
	require.NoError(n.t, cmd.Start())
	require.NoError(n.t, errors.Join(in.Close(), out.Close()))
	n.t.Cleanup(func() { _ = stdin.Close(); _ = stdout.Close() })
	return pod{cmd, n.t, stdin, json.NewDecoder(stdout), said}
}

// ran waits for the report of the next run.
func (p pod) ran() (o outcome) {
	p.t.Helper()
	require.NoError(p.t, p.out.Decode(&o))
	return o
}

// again makes the loop run now.
func (p pod) again() outcome {
	p.t.Helper()
	_, err := fmt.Fprintln(p.stdin)
	require.NoError(p.t, err)
	return p.ran()
}

// ends waits for the program's end, and returns its exit status and its error message.
func (p pod) ends() (code int, said string) {
	if exit := (*exec.ExitError)(nil); errors.As(p.Wait(), &exit) {
		code = exit.ExitCode()
	}
	return code, p.errors.String()
}

var allSteps = []string{"config", "paths", "cgroup", "bpffs", "sysctl", "forwarding", "hostname", "identity", "cni"}

func TestPLAN1_AppliedTwiceAndUninstalled(t *testing.T) {
	n := newReal(t)
	before := n.state()
	require.Equal(t, allSteps, n.succeeds("pod-a", "apply").Changed)
	applied := n.state()
	require.Equal(t, "acme-node", applied["hostname"])
	require.Equal(t, outcome{}, n.succeeds("pod-a", "apply"), "nothing is left to change")
	require.Empty(t, applied.Diff(n.state()))
	n.succeeds("pod-a", "uninstall")
	require.Empty(t, before.Diff(n.state()))
}

func TestPLAN12_EverythingIsUndoneWithoutAnyPlan(t *testing.T) {
	n := newReal(t)
	before := n.state()
	n.succeeds("pod-a", "apply")
	n.refused("", "revert", "no owner is configured")
	require.Contains(t, n.succeeds("admin", "uninstall").Changed, "hostname")
	require.Empty(t, before.Diff(n.state()))

	guarding := time.Now()
	code, said := n.start("pod-a", "guard").ends()
	require.NotZero(t, code, said)
	require.Less(t, time.Since(guarding), time.Minute)
}

// breakage is damage to a node, and the step that repairs it.
type breakage struct {
	name string
	do   func() error
	step string
}

func breakages() []breakage {
	remove := func(path string) func() error { return func() error { return os.Remove(path) } }
	write := func(path, content string) func() error {
		return func() error { return os.WriteFile(path, []byte(content), 0o644) }
	}
	return []breakage{
		{"the bpffs is unmounted", func() error { return unix.Unmount("/run/acme/bpf", 0) }, "bpffs"},
		{"the cgroups are unmounted", func() error { return unix.Unmount("/run/acme/cgroup", 0) }, "cgroup"},
		{"a directory is removed", remove("/run/acme/state"), "paths"},
		{"a file is removed", remove("/run/acme/lock"), "paths"},
		{"the resolved configuration is edited", write("/etc/acme/resolved/..data/mtu", "9000"), "config"},
		{"the hostname is changed", func() error { return unix.Sethostname([]byte("another")) }, "hostname"},
		{"the identity is edited", write("/etc/acme/identity.json", "edited"), "identity"},
		{"the identity is removed", remove("/etc/acme/identity.json"), "identity"},
		{"a value is changed", write("/proc/sys/net/ipv4/conf/all/rp_filter", "1"), "sysctl"},
		{"forwarding is turned off", write("/proc/sys/net/ipv4/ip_forward", "0"), "forwarding"},
		{"the drop-in is edited", write("/etc/sysctl.d/90-acme.conf", "net.ipv4.conf.all.rp_filter = 1\n"), "sysctl"},
		{"the drop-in is removed", remove("/etc/sysctl.d/90-acme.conf"), "sysctl"},
		{"the plugin is removed", remove("/opt/cni/bin/acme-cni"), "cni"},
		{"the plugin is replaced", write("/opt/cni/bin/acme-cni", "another"), "cni"},
		{"the configuration is moved away", func() error {
			return os.Rename("/etc/cni/net.d/05-acme.conflist", "/mnt/05-acme.conflist")
		}, "cni"},
		{"the configuration is edited", write("/etc/cni/net.d/05-acme.conflist", "{}"), "cni"},
		{"the other CNI writes its own again", write("/etc/cni/net.d/10-other.conflist", files["/etc/cni/net.d/10-other.conflist"]), "cni"},
	}
}

func TestTheLoopRepairsWhatIsBroken(t *testing.T) {
	n := newReal(t)
	before := n.state()
	p := n.start("pod-a", "run")
	require.Equal(t, outcome{Changed: allSteps}, p.ran())
	good := n.state()
	for _, b := range breakages() {
		n.do(b.do)
		require.NotEmpty(t, good.Diff(n.state()), b.name)
		require.Equal(t, outcome{Changed: []string{b.step}}, p.again(), b.name)
		require.Empty(t, good.Diff(n.state()), b.name)
	}
	require.Equal(t, outcome{}, p.again(), "nothing is left to repair")

	n.do(func() error { return os.WriteFile("/etc/acme/config/mtu", []byte("9000"), 0o644) })
	require.Equal(t, outcome{Changed: []string{"config", "identity", "cni"}}, p.again(), "the configuration is changed")
	n.do(func() error { return os.Rename("/etc/acme/config", "/etc/acme/gone") })
	other := n.state()
	require.Contains(t, p.again().Err, "/etc/acme/config")
	require.Empty(t, other.Diff(n.state()), "without a configuration nothing is touched")
	n.do(func() error {
		return errors.Join(os.Rename("/etc/acme/gone", "/etc/acme/config"), os.WriteFile("/etc/acme/config/mtu", []byte("1450\n"), 0o644))
	})
	require.Equal(t, outcome{Changed: []string{"config", "identity", "cni"}}, p.again())
	require.Empty(t, good.Diff(n.state()))

	require.NoError(t, p.stdin.Close())
	code, said := p.ends()
	require.Zero(t, code, "it ends when signalled: %s", said)
	require.Empty(t, good.Diff(n.state()), "the node stays as it is")
	n.succeeds("pod-a", "revert")
	require.Empty(t, before.Diff(n.state()))
}

func TestPLAN11_ARollingUpdate(t *testing.T) {
	n := newReal(t)
	before := n.state()
	older := n.start("pod-a", "run")
	require.Equal(t, outcome{Changed: allSteps}, older.ran())
	guard := n.start("pod-a", "guard")
	applied := n.state()
	newer := n.start("pod-b", "run")
	require.Equal(t, outcome{}, newer.ran(), "it finds all in place")
	require.Empty(t, applied.Diff(n.state()))
	code, said := guard.ends()
	require.Equal(t, 3, code, "the older one's guard ends: %s", said)

	// The newer one has one step less. It waits for the next line.
	n.do(func() error {
		return errors.Join(os.Mkdir("/etc/acme/node", 0o755), os.WriteFile("/etc/acme/node/forwarding", []byte("false"), 0o644),
			os.Remove("/opt/cni/bin/acme-cni"))
	})
	broken := n.state()
	require.Contains(t, older.again().Err, "pod-b")
	code, said = older.ends()
	require.Equal(t, 3, code, "its loop has ended")
	require.Contains(t, said, "no longer belongs to this owner")
	for _, verb := range []string{"apply", "revert", "uninstall"} {
		n.refused("pod-a", verb, `"pod-b" (generation 2`)
	}
	require.Empty(t, broken.Diff(n.state()), "the older one has changed nothing")

	require.Equal(t, outcome{Changed: []string{"forwarding", "config", "cni"}}, newer.again(), "a step switched off is reverted")
	without := n.state()
	require.Equal(t, before["sysctl net/ipv4/ip_forward"], without["sysctl net/ipv4/ip_forward"])
	require.Empty(t, changed(before, without, "net/ipv4/conf/lo", "net/ipv6"))
	require.Equal(t, applied["file /opt/cni/bin/acme-cni"], without["file /opt/cni/bin/acme-cni"])

	n.succeeds("pod-b", "uninstall")
	n.do(func() error { return os.RemoveAll("/etc/acme/node") })
	require.Empty(t, before.Diff(n.state()))
	require.Contains(t, newer.again().Err, "no longer belongs to this owner")
	code, _ = newer.ends()
	require.Equal(t, 3, code)
	require.Empty(t, before.Diff(n.state()), "the uninstalled stays uninstalled")
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
