// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bench_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/cri/critest"
	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/programs"
)

const (
	limit = 64 << 20 // bytes of the cgroup
	many  = 300_000
)

// node is a throw-away node on which nodeinit runs in a cgroup of its own.
type node struct {
	*testns.Node
	t      *testing.T
	binary string
	work   string
	run    int
	cgroup string // where the node's cgroups with a memory controller are
	first  bool   // they are of version 1
}

func newNode(t *testing.T, binary string) *node {
	t.Helper()
	testns.Root(t)
	machine, err := testns.StartNode(t.Context(), testns.NodeOptions{Controllers: true})
	if errors.Is(err, errors.ErrUnsupported) {
		testns.SkipKernel(t, "memory controller for the node: "+err.Error())
	}
	require.NoError(t, err)
	n := &node{Node: machine, t: t, binary: binary, work: t.TempDir(), cgroup: "/sys/fs/cgroup"}
	t.Cleanup(func() { require.NoError(t, errors.Join(machine.Kill(), machine.Close())) })
	if n.first = n.shell(`test ! -d /sys/fs/cgroup/memory || echo first`) != ""; n.first {
		n.cgroup += "/memory"
	}
	require.NoError(t, os.Mkdir(n.work+"/plugins", 0o755))
	for _, name := range []string{"test-cni", "loopback"} {
		require.NoError(t, os.WriteFile(n.work+"/plugins/"+name, []byte("#!/bin/sh\necho '{\"cniVersion\":\"1.0.0\",\"supportedVersions\":[\"1.0.0\"]}'\n"), 0o755))
	}
	require.NoError(t, os.WriteFile(n.work+"/test.conflist", []byte(`{"cniVersion":"1.0.0","name":"test","plugins":[{"type":"test-cni"}]}`), 0o644))
	return n
}

func (n *node) do(f func() error) {
	n.t.Helper()
	require.NoError(n.t, n.Do(n.t.Context(), func(context.Context) error { return f() }))
}

func (n *node) start(args ...string) (cmd *exec.Cmd, output *bytes.Buffer) {
	n.t.Helper()
	output = &bytes.Buffer{}
	cmd = exec.CommandContext(n.t.Context(), args[0], args[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr = output, output
	require.NoError(n.t, n.StartCommand(cmd))
	return cmd, output
}

func (n *node) shell(script string) string {
	n.t.Helper()
	cmd, output := n.start("sh", "-euc", script)
	require.NoError(n.t, cmd.Wait(), "%s: %s", script, output)
	return strings.TrimSpace(output.String())
}

// files makes many files in a directory, with names that a program would keep.
func (n *node) files(dir string, count int, suffix, content string) {
	n.t.Helper()
	n.do(func() error {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for i := range count {
			if err := os.WriteFile(fmt.Sprintf("%s/%06d-other%s", dir, i, suffix), []byte(content), 0o644); err != nil {
				return err
			}
		}
		return nil
	})
}

// routes makes many routes in a table.
func (n *node) routes(table int) {
	n.t.Helper()
	var batch bytes.Buffer
	for i := range many {
		fmt.Fprintf(&batch, "route add blackhole 10.%d.%d.%d/32 table %d\n", i>>16, i>>8&255, i&255, table)
	}
	path := filepath.Join(n.work, fmt.Sprint("routes-", table))
	require.NoError(n.t, os.WriteFile(path, batch.Bytes(), 0o600))
	n.shell("ip -batch " + path)
}

// taken is a command's consumption.
type taken struct {
	name      string
	code      int
	output    string
	resident  int           // KiB at most
	charged   int           // largest charge to the cgroup, in KiB: including files it read or wrote, and kernel memory
	took      time.Duration // by the clock
	processor time.Duration
}

func (m taken) String() string {
	return fmt.Sprintf("| %s | %d | %.1f | %.1f | %.2f | %.2f |",
		m.name, m.code, float64(m.resident)/1024, float64(m.charged)/1024, m.took.Seconds(), m.processor.Seconds())
}

// cgroupOf makes the cgroup of the next run, with limit, and returns the file with the
// memory charged to it, and a command that prints its number of OOM kills.
func (n *node) cgroupOf() (dir, peak, kills string) {
	n.run++
	dir = fmt.Sprintf("%s/run-%d", n.cgroup, n.run)
	if n.first {
		n.shell(fmt.Sprintf("mkdir %[1]s; echo %[2]d > %[1]s/memory.limit_in_bytes", dir, limit))
		return dir, dir + "/memory.max_usage_in_bytes", "sed -n 's/^oom_kill //p' " + dir + "/memory.oom_control"
	}
	n.shell(fmt.Sprintf("mkdir %[1]s; echo %[2]d > %[1]s/memory.max; test ! -e %[1]s/memory.swap.max || echo 0 > %[1]s/memory.swap.max", dir, limit))
	return dir, dir + "/memory.peak", "sed -n 's/^oom_kill //p' " + dir + "/memory.events"
}

// confined runs nodeinit in a cgroup of the limit. While it runs, meanwhile is called.
func (n *node) confined(name string, meanwhile func(), args ...string) taken {
	n.t.Helper()
	dir, peak, kills := n.cgroupOf()
	measured := filepath.Join(n.work, "measured")
	script := `echo $$ > "$1/cgroup.procs"; shift; exec /usr/bin/time -q -f '%M %e %U %S' -o "$@"`
	begin := time.Now()
	cmd, output := n.start(append([]string{"sh", "-euc", script, "sh", dir, measured, n.binary}, args...)...)
	if meanwhile != nil {
		meanwhile()
	}
	err := cmd.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		require.NoError(n.t, err)
	}
	m := taken{name: name, code: cmd.ProcessState.ExitCode(), output: output.String(), took: time.Since(begin)}
	raw, err := os.ReadFile(measured)
	require.NoError(n.t, err)
	var clock, user, system float64
	_, err = fmt.Sscan(string(raw), &m.resident, &clock, &user, &system)
	require.NoError(n.t, err, string(raw))
	m.took, m.processor = seconds(clock), seconds(user+system)
	if _, err := fmt.Sscan(n.shell("cat "+peak+" || echo 0"), &m.charged); err == nil {
		m.charged >>= 10
	}
	require.Equal(n.t, "0", n.shell(kills), "%s was killed for its memory: %s", name, m.output)
	return m
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// fill is JSON of 4 MiB, of as many elements as it can have.
func fill(start, element, end string) string {
	const size = 4<<20 - 1<<10 // with the rest of the message
	return start + strings.Repeat(element+",", (size-len(start+end))/(len(element)+1)-1) + element + end
}

func (n *node) runtime(info map[string]string) {
	n.t.Helper()
	l, err := n.Listen("/run/containerd/containerd.sock")
	require.NoError(n.t, err)
	n.t.Cleanup(func() { _ = l.Close() })
	critest.Serve(n.t, l, critest.Runtime{Info: func() map[string]string { return info }})
}

// The table in EVIDENCE.md.
func TestSEC6_PeakMemory(t *testing.T) {
	binary, err := programs.Program{Package: "./examples/nodeinit"}.Build(t.Context())
	require.NoError(t, err)
	var table []taken
	took := func(m taken, code int, says string) {
		t.Helper()
		t.Logf("%s\n%.2000s", m, m.output)
		require.Equal(t, code, m.code, "%s: %.2000s", m.name, m.output)
		require.Contains(t, m.output, says, m.name)
		table = append(table, m)
	}
	install := func(n *node, more ...string) []string {
		return append([]string{"install-cni", "--plugins", n.work + "/plugins", "--cni-conf", n.work + "/test.conflist"}, more...)
	}

	for _, c := range []struct{ name, answer string }{
		{"networks", fill(`{"Networks":[`, "{}", "]}")},
		{"plugins", fill(`{"Networks":[{"Config":{"Plugins":[`, "{}", "]}}]}")},
		{"folders", fill(`{"PluginDirs":[`, `"/"`, "]}")},
	} {
		n := newNode(t, binary)
		n.runtime(map[string]string{"cniconfig": c.answer})
		took(n.confined("install-cni; the runtime's answer: 4 MiB of "+c.name, nil, install(n)...), 0, "more than 20000 elements")
	}
	for _, c := range []struct {
		table int
		says  string
	}{{100, "nothing"}, {2004, "299000 that are not listed"}} {
		n := newNode(t, binary)
		n.routes(c.table)
		took(n.confined(fmt.Sprintf("cleanup --dry-run; %d foreign routes in table %d", many, c.table), nil, "cleanup", "--dry-run", "--all-state"), 0, c.says)
	}

	n := newNode(t, binary)
	took(n.confined("install-cni", nil, install(n)...), 0, "changed")
	n.files("/opt/cni/bin", many, "", "")
	n.files("/etc/cni/net.d", many, ".txt", "")
	const watched = 10 * time.Second
	m := n.confined(fmt.Sprintf("guard, for %v; %d other names in each folder", watched, many), func() {
		<-time.After(watched)
		n.shell(`for p in /proc/[0-9]*; do if grep -qx nodeinit "$p/comm"; then kill -TERM "${p#/proc/}"; fi; done`)
	}, append([]string{"guard"}, install(n)[1:]...)...)
	took(m, 0, "")
	require.Less(t, m.processor, watched/20, "of processor time")

	n = newNode(t, binary)
	n.files("/etc/cni/net.d", 8000, ".conflist", strings.Repeat("x", 4<<10))
	took(n.confined("install-cni --cni-exclusive; 8000 other configurations of 4 KiB", nil, install(n, "--cni-exclusive")...), 1,
		"/etc/cni/net.d has 8000 other configurations to set aside")
	took(n.confined("uninstall, after that", nil, "uninstall"), 0, "")
	n.shell("rm -rf /etc/cni/net.d; mkdir /etc/cni/net.d")
	n.files("/etc/cni/net.d", 100, ".conflist", strings.Repeat("x", 4<<10))
	took(n.confined("install-cni --cni-exclusive; 100 other configurations of 4 KiB", nil, install(n, "--cni-exclusive")...), 0, "set aside")
	took(n.confined("the same again", nil, install(n, "--cni-exclusive")...), 0, "unchanged")
	took(n.confined("uninstall, after that", nil, "uninstall"), 0, "")
	require.Equal(t, "100", n.shell("ls /etc/cni/net.d | wc -l"))

	var text strings.Builder
	for _, m := range table {
		fmt.Fprintln(&text, m)
		require.Less(t, m.resident, limit>>10, m.name)
	}
	t.Logf("\n| command; beside what | exit status | resident, MiB | charged, MiB | time, s | processor, s |\n|---|---|---|---|---|---|\n%s", text.String())
}
