// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package secondagent_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/bootstrap/reconcile"
	"github.com/slipway-dev/slipway/internal/snapshot"
)

const (
	verbEnv  = "ACME_VERB" // run, apply, revert or uninstall
	ownerEnv = "ACME_OWNER"
)

// TestMain is the agent's program too, for the tests to start on a node.
func TestMain(m *testing.M) {
	verb := os.Getenv(verbEnv)
	if verb == "" {
		os.Exit(m.Run())
	}
	err := program(context.Background(), verb)
	switch {
	case err == nil:
	case errors.Is(err, journal.ErrNotOwner), errors.Is(err, journal.ErrRevoked):
		os.Exit(3)
	default:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func program(ctx context.Context, verb string) (err error) {
	a, err := agent{plugins: fstest.MapFS{"acme-cni": {Data: []byte(plugin)}}, owner: os.Getenv(ownerEnv)}.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.journal.Close()) }()
	var report *bootstrap.Report
	switch verb {
	case "apply":
		report, err = a.plan().Apply(ctx)
	case "revert":
		report, err = a.plan().Revert(ctx)
	case "uninstall":
		_, err := a.journal.RevertAll(ctx)
		return err
	default:
		return a.loop(ctx)
	}
	tell(report, err)
	return err
}

// loop runs for each line on standard input, until its end.
func (a agent) loop(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	trigger := make(chan struct{})
	go func() {
		defer stop()
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			trigger <- struct{}{}
		}
	}()
	err := reconcile.Loop{Plan: a.plan(), Interval: time.Hour, Retry: time.Hour, Trigger: trigger, Done: tell}.Run(ctx)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// outcome is what the program says of a run.
type outcome struct {
	Changed []string // steps
	Err     string
}

func tell(report *bootstrap.Report, err error) {
	var o outcome
	for _, r := range report.Results {
		if r.Status == bootstrap.Changed {
			o.Changed = append(o.Changed, r.Step)
		}
	}
	if err != nil {
		o.Err = err.Error()
	}
	_ = json.NewEncoder(os.Stdout).Encode(o)
}

// mountSource tells one mount from another.
var mountSource = regexp.MustCompile(`slipway-[-._a-z0-9]+`)

// real is a node on the running kernel.
type real struct {
	*bootstraptest.Node
	t *testing.T
}

func newReal(t *testing.T) real {
	t.Helper()
	n := real{bootstraptest.NewNode(t), t}
	n.do(func() error {
		return errors.Join(prepareFiles("/"), os.WriteFile("/proc/sys/net/ipv4/conf/all/rp_filter", []byte("2"), 0))
	})
	return n
}

// do is what an administrator does on the node.
func (n real) do(f func() error) {
	n.t.Helper()
	require.NoError(n.t, n.Do(n.t.Context(), func(context.Context) error { return f() }))
}

// state is all of the node that the agent touches, but for its journal and the
// lock, which stays.
func (n real) state() snapshot.Snapshot {
	n.t.Helper()
	s := snapshot.Snapshot{}
	n.do(func() error {
		return errors.Join(s.Files("/etc", "/opt", "/run", "/var"), s.Mounts(), s.Values("net/ipv4", "net/ipv6"))
	})
	delete(s, "file /run/acme.lock")
	delete(s, "file /var/lib/acme/journal.json")
	for object, state := range s {
		s[object] = mountSource.ReplaceAllString(state, "slipway-")
	}
	return s
}

// program runs a verb to its end.
func (n real) program(owner, verb string) (o outcome, code int) {
	n.t.Helper()
	out, err := n.command(owner, verb).Output()
	exit := (*exec.ExitError)(nil)
	if errors.As(err, &exit) {
		n.t.Logf("%s: %s", verb, exit.Stderr)
		return o, exit.ExitCode()
	}
	require.NoError(n.t, err)
	if len(out) > 0 {
		require.NoError(n.t, json.Unmarshal(out, &o))
	}
	return o, 0
}

func (n real) command(owner, verb string) *bootstraptest.Cmd {
	n.t.Helper()
	self, err := os.Executable()
	require.NoError(n.t, err)
	cmd := n.Command(self)
	cmd.Env = append(os.Environ(), verbEnv+"="+verb, ownerEnv+"="+owner)
	return cmd
}

// pod is an agent whose loop runs.
type pod struct {
	*bootstraptest.Cmd
	t     *testing.T
	stdin io.WriteCloser
	out   *json.Decoder
}

func (n real) start(owner string) pod {
	n.t.Helper()
	cmd := n.command(owner, "run")
	in, stdin, err := os.Pipe()
	require.NoError(n.t, err)
	stdout, out, err := os.Pipe()
	require.NoError(n.t, err)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, os.Stderr
	require.NoError(n.t, cmd.Start())
	require.NoError(n.t, errors.Join(in.Close(), out.Close()))
	n.t.Cleanup(func() { _ = stdin.Close(); _ = stdout.Close() })
	return pod{cmd, n.t, stdin, json.NewDecoder(stdout)}
}

// ran waits for what the next run has done.
func (p pod) ran() (o outcome) {
	p.t.Helper()
	require.NoError(p.t, p.out.Decode(&o))
	return o
}

// again has the loop run now.
func (p pod) again() outcome {
	p.t.Helper()
	_, err := fmt.Fprintln(p.stdin)
	require.NoError(p.t, err)
	return p.ran()
}

// code waits for the program's end.
func (p pod) code() int {
	if exit := (*exec.ExitError)(nil); errors.As(p.Wait(), &exit) {
		return exit.ExitCode()
	}
	return 0
}

var allSteps = []string{"paths", "cgroup", "bpffs", "sysctl", "forwarding", "identity", "cni"}

func TestPLAN1_AppliedTwiceAndUninstalled(t *testing.T) {
	n := newReal(t)
	before := n.state()
	o, code := n.program("pod-a", "apply")
	require.Zero(t, code)
	require.Equal(t, allSteps, o.Changed)
	applied := n.state()
	o, code = n.program("pod-a", "apply")
	require.Zero(t, code)
	require.Equal(t, outcome{}, o, "nothing is left to change")
	require.Empty(t, applied.Diff(n.state()))
	_, code = n.program("pod-a", "uninstall")
	require.Zero(t, code)
	require.Empty(t, before.Diff(n.state()))
}

// breakage is what somebody does to a node, and which step puts it right.
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
	p := n.start("pod-a")
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
	require.Equal(t, outcome{Changed: []string{"identity", "cni"}}, p.again(), "the configuration is changed")
	n.do(func() error { return os.Rename("/etc/acme/config", "/etc/acme/gone") })
	other := n.state()
	require.Contains(t, p.again().Err, "/etc/acme/config")
	require.Empty(t, other.Diff(n.state()), "without a configuration nothing is touched")
	n.do(func() error {
		return errors.Join(os.Rename("/etc/acme/gone", "/etc/acme/config"), os.WriteFile("/etc/acme/config/mtu", []byte("1450\n"), 0o644))
	})
	require.Equal(t, outcome{Changed: []string{"identity", "cni"}}, p.again())
	require.Empty(t, good.Diff(n.state()))

	require.NoError(t, p.stdin.Close())
	require.Zero(t, p.code(), "it leaves when it is told to")
	require.Empty(t, good.Diff(n.state()), "and leaves the node as it is")
	_, code := n.program("pod-a", "revert")
	require.Zero(t, code)
	require.Empty(t, before.Diff(n.state()))
}

func TestPLAN11_ARollingUpdate(t *testing.T) {
	n := newReal(t)
	before := n.state()
	older := n.start("pod-a")
	require.Equal(t, outcome{Changed: allSteps}, older.ran())
	applied := n.state()
	newer := n.start("pod-b")
	require.Equal(t, outcome{}, newer.ran(), "it finds all in place")
	require.Empty(t, applied.Diff(n.state()))

	n.do(func() error { return os.Remove("/opt/cni/bin/acme-cni") })
	broken := n.state()
	require.Contains(t, older.again().Err, "pod-b")
	require.Equal(t, 3, older.code(), "its loop has ended")
	for _, verb := range []string{"apply", "revert", "uninstall"} {
		_, code := n.program("pod-a", verb)
		require.Equal(t, 3, code, verb)
	}
	require.Empty(t, broken.Diff(n.state()), "the older one has changed nothing")

	require.Equal(t, outcome{Changed: []string{"cni"}}, newer.again())
	require.Empty(t, applied.Diff(n.state()))
	_, code := n.program("pod-b", "uninstall")
	require.Zero(t, code)
	require.Empty(t, before.Diff(n.state()))
	require.Contains(t, newer.again().Err, "no longer this one's")
	require.Equal(t, 3, newer.code())
	require.Empty(t, before.Diff(n.state()), "what was uninstalled stays so")
}
