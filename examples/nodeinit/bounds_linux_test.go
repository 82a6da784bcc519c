// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main_test

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/critest"
)

// The limits of the program's memory, in KiB: in total, and where it reads much without keeping
// it, which would be 60 MiB.
const (
	mostMemory = 64 << 10
	mostUnkept = 56 << 10
)

// sized is the amount of data for a test: less in short mode.
func sized(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

// manyNames is the number of files in a directory, more than are ever read.
func manyNames() int { return sized(300_000, 20_000) }

// confined runs the program on the node with 64 descriptors, and returns its peak memory, in
// KiB.
func (n *node) confined(args ...string) (o outcome, memory int) {
	n.t.Helper()
	measured := filepath.Join(n.work, "measured")
	cmd := n.Command("/usr/bin/time", append([]string{"-q", "-f", "%M", "-o", measured, "prlimit", "--nofile=64", binary}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	o = n.outcome(cmd)
	text, err := os.ReadFile(measured)
	require.NoError(n.t, err)
	memory, err = strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(n.t, err, string(text))
	return o, memory
}

// many makes a directory with many files with long names: a program that keeps the names shows
// it in its memory.
func (n *node) many(dir, suffix string) {
	n.t.Helper()
	n.do(func() error {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		at, err := os.Open(dir)
		if err != nil {
			return err
		}
		defer at.Close()
		for i := range manyNames() {
			if err := unix.Mknodat(int(at.Fd()), fmt.Sprintf("%0200d%s", i, suffix), unix.S_IFREG|0o644, 0); err != nil {
				return err
			}
		}
		return nil
	})
}

// Whatever is in the place of a file, a run ends with one line that names it, in little memory.
func TestSEC5_SEC6_WhatIsNoFileIsNamed(t *testing.T) {
	n := newParallelNode(t)
	n.shell(`mkdir /run/bad && cd /run/bad && mkfifo fifo && truncate -s 200G sparse && mkdir directory &&
		ln -s /dev/zero device && ln -s sparse link`)
	says := map[string]string{
		"fifo": "is a FIFO", "sparse": "larger than", "directory": "is a directory", "device": "is a device",
		"link": "larger than",
	}
	for name, c := range map[string]struct {
		place string // the object's place; "": the line names the object itself
		args  []string
		kinds string
	}{
		"--config":   {"", []string{"check", "--config", "/run/bad/KIND"}, "fifo sparse directory device link"},
		"--cni-conf": {"", []string{"install-cni", "--cni-conf", "/run/bad/KIND"}, "fifo sparse"},
		"file":       {"", []string{"build-config", "--source", "file:/run/bad/KIND", "--dest", "/run/agent"}, "fifo sparse"},
		"plugin":     {"/run/plugins/p", []string{"install-cni", "--plugins", "/run/plugins"}, "sparse"},
		"value":      {"/run/values/v", []string{"build-config", "--source", "dir:/run/values", "--dest", "/run/agent"}, "fifo sparse"},
		"gate":       {"/run/gate/cni-uninstall", []string{"uninstall-cni", "--config-dir", "/run/gate"}, "fifo sparse"},
		"pid file":   {"/run/cilium/cilium.pid", []string{"cleanup", "--all-state", "-f"}, "fifo"},
		"lock":       {"/run/slipway.lock", []string{"mount-cgroup"}, "fifo directory"},
		"ledger":     {"/var/lib/slipway/ledger", []string{"uninstall"}, "fifo sparse"},
		"data":       {"/run/agent/..data", []string{"build-config", "--source", "file:" + n.source, "--dest", "/run/agent"}, "directory"},
	} {
		for kind := range strings.FieldsSeq(c.kinds) {
			t.Run(name+" "+kind, func(t *testing.T) {
				n.shell(`rm -rf /run/plugins /run/values /run/gate /run/cilium /run/agent /run/slipway.lock /var/lib/slipway
					mkdir /run/plugins && touch /run/plugins/loopback`)
				if c.place != "" {
					n.shell(`umask 077; mkdir -p ` + filepath.Dir(c.place) + ` && cp -a /run/bad/` + kind + ` ` + c.place)
				}
				args := strings.Split(strings.ReplaceAll(strings.Join(c.args, "\n"), "KIND", kind), "\n")
				o, memory := n.confined(args...)
				code, lines := 1, 1
				switch name {
				case "--config":
					code, lines = 64, 2 // and where to read more
				case "pid file":
					lines = 2 // and that no runtime says where it looks
				}
				require.Equal(t, code, o.code, o.stdout+o.stderr)
				require.Equal(t, lines, strings.Count(o.stderr, "\n"), o.stderr)
				if c.place == "" || name == "value" || name == "gate" || name == "pid file" {
					require.Contains(t, o.stderr, says[kind])
				}
				require.Contains(t, o.stderr, filepath.Base(cmp.Or(c.place, kind)))
				require.Less(t, memory, mostMemory)
			})
		}
	}
}

// With directories of many entries, each run does its work or ends with one line, in little
// memory.
func TestSEC6_ManyEntries(t *testing.T) {
	n := newParallelNode(t)
	n.many("/run/many", ".conf")
	n.shell(`mkdir -p /var/lib/slipway /etc/cni/net.d /opt/cni/bin /etc/sysctl.d /sys/fs/bpf && chmod 700 /var/lib/slipway`)
	for name, c := range map[string]struct {
		dir  string // the directory
		args []string
		code int
		says string // in the one line; empty if none is printed
	}{
		"values":        {"/run/values", []string{"build-config", "--source", "dir:/run/values", "--dest", "/run/agent"}, 1, "/run/values holds more than"},
		"data":          {"/run/agent", []string{"build-config", "--source", "file:" + n.source, "--dest", "/run/agent"}, 1, "/run/agent"},
		"plugins":       {"/run/plugins", []string{"install-cni", "--plugins", "/run/plugins"}, 1, "/run/plugins holds more than"},
		"chain":         {"/etc/cni/net.d", []string{"install-cni", "--cni-chain", "*"}, 1, "/etc/cni/net.d holds more than"},
		"exclusive":     {"/etc/cni/net.d", []string{"install-cni", "--plugins", n.plugins, "--cni-conf", n.conf, "--cni-exclusive"}, 1, "/etc/cni/net.d holds more than"},
		"configuration": {"/etc/cni/net.d", []string{"install-cni", "--plugins", n.plugins, "--cni-conf", n.conf}, 0, ""},
		"bin":           {"/opt/cni/bin", []string{"install-cni", "--plugins", n.plugins, "--cni-conf", n.conf}, 0, ""},
		"sysctl.d":      {"/etc/sysctl.d", []string{"check", "--only", "sysctl"}, 2, "/etc/sysctl.d holds more than"},
		"bpffs":         {"/sys/fs/bpf", []string{"check", "--only", "bpffs"}, 2, ""},
		"state":         {"/var/lib/slipway", []string{"mount-cgroup", "/run/cgroup"}, 0, ""},
		"netns":         {"/run/netns", []string{"cleanup", "--dry-run", "--all-state"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n.shell(`rm -rf /run/agent; mkdir -p /run/values /run/agent /run/plugins /run/netns
				mount --bind /run/many ` + c.dir)
			defer n.shell(`umount ` + c.dir + `; find /run/many -newer /run/values -type f -name '[!0-9]*' -delete`)
			o, memory := n.confined(c.args...)
			t.Logf("%d %s%s %d KiB", o.code, o.stdout, o.stderr, memory)
			require.Equal(t, c.code, o.code, o.stdout+o.stderr)
			require.Less(t, memory, mostUnkept)
			require.Contains(t, o.stdout+o.stderr, c.says)
			if c.code == 1 {
				require.Equal(t, 1, strings.Count(o.stderr, "\n"), o.stderr)
			}
		})
	}
}

// A tree grown by another program in a state directory is removed entirely, in little memory and
// with few descriptors.
func TestCLN5_SEC6_AWideTree(t *testing.T) {
	n := newParallelNode(t)
	n.many("/run/cilium/wide", "")
	o, memory := n.confined("cleanup", "-f", "--all-state")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, fmt.Sprint(manyNames(), " files, 1 directory"))
	require.Less(t, memory, mostUnkept)
	require.Empty(t, n.shell("ls /run | grep -x cilium || true"))
}

// A system call that does not return is abandoned a second after the deadline, a second after
// the first signal, or at once on the second signal: with one line and exit status 1.
func TestSEC6_ASystemCallThatDoesNotReturn(t *testing.T) {
	n := newParallelNode(t)
	n.dead("/run/dead")
	build := func(more ...string) []string {
		return append([]string{"build-config", "--source", "file:/run/dead/config", "--dest", "/run/agent"}, more...)
	}
	cases := map[string]struct {
		args    []string
		signals int
		says    string
	}{
		"deadline":    {build("--timeout", "100ms"), 0, "given up: step config: wait: --timeout of 100ms is over, and 1s later something has not ended by itself (at --source file:/run/dead/config)"},
		"one signal":  {build(), 1, "1s later"},
		"two signals": {build(), 2, ""}, // either the second signal or the second after the first
		"JSON":        {build("--timeout", "100ms", "--output", "json"), 0, "--timeout of 100ms is over"},
		"flags":       {[]string{"check", "--config", "/run/dead/flags", "--timeout", "100ms"}, 0, "(at --config /run/dead/flags)"},
		"plugins":     {[]string{"install-cni", "--plugins", "/run/dead/plugins", "--timeout", "100ms"}, 0, "step cni: wait: --timeout of 100ms is over, and 1s later something has not ended by itself (at --plugins /run/dead/plugins)"},
		"state":       {[]string{"uninstall", "--state-dir", "/run/dead/state", "--timeout", "100ms"}, 0, "(at --state-dir /run/dead/state)"},
		"a step":      {[]string{"apply", "--bpf-root", "/run/dead/bpf", "--timeout", "2s"}, 0, "given up: step bpffs: wait: --timeout of 2s is over, and 1s later something has not ended by itself"},
	}
	ends := map[string]func(*testing.T) outcome{} // so that all wait at the same time
	for name, c := range cases {
		var stdout, stderr bytes.Buffer
		cmd := n.Command(binary, c.args...)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		require.NoError(t, cmd.Start())
		if c.signals > 0 {
			n.awaitCall(cmd.Process.Pid)
		}
		for range c.signals {
			require.NoError(t, cmd.Process.Signal(unix.SIGTERM))
			n.awaitDelivery(cmd.Process.Pid)
		}
		ends[name] = func(t *testing.T) outcome { return finish(t, cmd.Wait, &stdout, &stderr) }
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := ends[name](t)
			require.Equal(t, 1, o.code, o.stderr)
			require.Equal(t, 1, strings.Count(o.stderr, "\n"), o.stderr)
			require.Contains(t, o.stderr, "given up")
			require.Contains(t, o.stderr, c.says)
			if name == "JSON" {
				require.Contains(t, o.report(t).Results[0].Error, c.says)
			}
		})
	}
}

// dead mounts a file system whose server never answers.
func (n *node) dead(dir string) {
	n.t.Helper()
	n.do(func() error {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		device := filepath.Join("/run", "fuse")
		if err := unix.Mknod(device, unix.S_IFCHR|0o600, int(unix.Mkdev(10, 229))); err != nil {
			return err
		}
		server, err := os.OpenFile(device, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		n.t.Cleanup(func() { server.Close() })
		return unix.Mount("dead", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", server.Fd()))
	})
}

// awaitCall waits until a thread of the process is blocked in the kernel, other than for
// another thread, for an event, or for a disk or a program, which may be slow.
func (n *node) awaitCall(pid int) {
	n.t.Helper()
	idle := []string{"running", "-1"}
	for _, call := range []int{
		unix.SYS_FUTEX, unix.SYS_EPOLL_PWAIT, unix.SYS_NANOSLEEP, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_WAIT4, unix.SYS_WAITID,
	} {
		idle = append(idle, strconv.Itoa(call))
	}
	seen := map[string]int{}
	require.Eventually(n.t, func() bool {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
		for _, thread := range threads {
			text, _ := os.ReadFile(thread)
			if call, _, _ := strings.Cut(strings.TrimSpace(string(text)), " "); call != "" && !slices.Contains(idle, call) {
				if seen[string(text)]++; seen[string(text)] > 20 {
					return true
				}
			}
		}
		return false
	}, time.Minute, 5*time.Millisecond)
}

// awaitDelivery waits until no signal is pending, so that the next is not merged with it. It
// would wait forever if the main thread were the one that hangs: the kernel gives a signal to
// that thread, and wakes no other. A zombie keeps its pending signals.
func (n *node) awaitDelivery(pid int) {
	n.t.Helper()
	require.Eventually(n.t, func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		status := string(text)
		return err != nil || strings.Contains(status, "\nState:\tZ") || strings.Contains(status, "\nShdPnd:\t0000000000000000\n")
	}, time.Minute, time.Millisecond)
}

// An API server sends answers, or pages, of any size.
func TestSEC6_LyingAPIServer(t *testing.T) {
	n := newParallelNode(t)
	const (
		nobody = `{"matchLabels":{"a":"b"}}`
		every  = `{}`
	)
	entries := func(count, size int) string {
		var text strings.Builder
		value := strings.Repeat("x", size)
		for i := range count {
			fmt.Fprintf(&text, `,"config.cilium.io/%d":"%s"`, i, value)
		}
		return text.String()
	}
	for name, c := range map[string]struct {
		selector       string
		pages, objects int
		values         string // in each object
		source         string // empty means the node configs
		code           int
		says           string
		most           int // KiB of memory at most
	}{
		"small keys, of other nodes":   {nobody, sized(30, 6), 250, entries(100, 1), "", 0, "changed", mostUnkept},
		"large values, of other nodes": {nobody, sized(17, 6), 4, entries(1, 900<<10), "", 0, "changed", mostMemory},
		"a large ConfigMap":            {"", 0, 0, entries(48_000, 50), "config-map:kube-system/c", 0, "and 47900 findings more, which explain lists", mostMemory},
		"all of it":                    {every, 5, 250, entries(90, 120), "env:NONE,config-map:kube-system/c,cilium-node-config:kube-system,node:n", 1, "the API server sends", mostMemory},
	} {
		t.Run(name, func(t *testing.T) {
			var page atomic.Int64
			server := n.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case strings.Contains(r.URL.Path, "/configmaps/"):
					fmt.Fprintf(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"kube-system"},"data":{"a":"b"%s}}`, c.values)
				case strings.Contains(r.URL.Path, "/nodes/"):
					fmt.Fprintf(w, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"n","annotations":{"a":"b"%s}}}`, c.values)
				case strings.HasSuffix(r.URL.Path, "/ciliumnodeconfigs"):
					more, k := "", page.Add(1)
					if k < int64(c.pages) {
						more = fmt.Sprint(k)
					}
					fmt.Fprintf(w, `{"apiVersion":"cilium.io/v2","kind":"CiliumNodeConfigList","metadata":{"continue":%q,"resourceVersion":"1"},"items":[`, more)
					for i := range c.objects {
						if i > 0 {
							fmt.Fprint(w, ",")
						}
						fmt.Fprintf(w, `{"apiVersion":"cilium.io/v2","kind":"CiliumNodeConfig","metadata":{"name":"x%d-%d","namespace":"kube-system"},"spec":{"nodeSelector":%s,"defaults":{"a":"b"%s}}}`,
							k, i, c.selector, c.values)
					}
					fmt.Fprint(w, "]}")
				}
			}))
			var o outcome
			memory := c.most
			for tries := 0; memory >= c.most && tries < 3; tries++ { // a collector that waits for a processor lets garbage pile up
				n.shell(`ip link set lo up; rm -rf /run/agent /var/lib/slipway`)
				o, memory = n.confined("build-config", "--dest", "/run/agent", "--node-name", "n",
					"--source", cmp.Or(c.source, "cilium-node-config:kube-system"), "--k8s-api-server-urls", "http://"+server)
			}
			require.Equal(t, c.code, o.code, o.stdout+o.stderr)
			require.Contains(t, o.stdout+o.stderr, c.says)
			require.Less(t, memory, c.most)
			require.LessOrEqual(t, strings.Count(o.stderr, "\n"), 103) // two may say what is waited for
		})
	}
}

// So do a runtime, and whoever may make routes.
func TestSEC6_LyingRuntimeAndForeignRoutes(t *testing.T) {
	n := newParallelNode(t)
	n.containerd("/etc/cni/net.d")
	networks := `{"Networks":[{}` + strings.Repeat(",{}", 1<<20) + `]}`
	n.runtime("/run/crio/crio.sock", critest.Runtime{Info: func() map[string]string { return map[string]string{"cniconfig": networks} }})
	o, memory := n.confined("install-cni", "--plugins", n.plugins, "--cni-conf", n.conf, "--runtime-endpoint", "unix:///run/crio/crio.sock")
	require.Contains(t, o.stdout+o.stderr, "more than 20000 elements")
	require.Less(t, memory, mostMemory)

	n.shell(fmt.Sprintf("seq 1 %d | while read i; do echo route add blackhole 10.$((i>>16)).$((i>>8&255)).$((i&255))/32 table 2004; done > /run/routes; ip -batch /run/routes", manyNames()))
	o, memory = n.confined("cleanup", "--dry-run", "--all-state", "--cni-bin-dir=/opt/cni/bin", "--cni-conf-dir=/etc/cni/net.d")
	require.Contains(t, o.stdout, "that are not listed")
	require.Less(t, memory, mostUnkept)
}
