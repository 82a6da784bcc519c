// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/internal/testns"
)

// limitEnv says which of the files in /proc/sys/user is to be set to what.
const limitEnv = "SLIPWAY_TEST_LIMIT"

// guardUntilTold installs and guards until its input ends. It prints "armed"
// when it is, and what is repaired, and trouble. A line of input lifts the
// limit it was given.
func guardUntilTold() int {
	limit, value, _ := strings.Cut(os.Getenv(limitEnv), "=")
	path := filepath.Join("/proc/sys/user", limit)
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	if limit != "" {
		if err := os.WriteFile(path, []byte(value), 0); err != nil {
			fmt.Println("error", err)
			return 1
		}
	}
	go func() {
		in := bufio.NewReader(os.Stdin)
		if _, err := in.ReadString('\n'); err == nil {
			os.WriteFile(path, []byte("1000"), 0)
			io.Copy(io.Discard, in)
		}
		cancel()
	}()
	g := cniinstall.Guard{
		Install:  smallInstall(os.Getenv(dirEnv)),
		Repaired: func(changes []string) { fmt.Println("repaired", strings.Join(changes, "; ")) },
		Trouble:  func(err error) { fmt.Println("trouble", err) },
	}
	if err := g.Install.Apply(ctx); err != nil {
		fmt.Println("error", err)
		return 1
	}
	fmt.Println("installed")
	fmt.Println("ended", g.Run(ctx))
	return 0
}

func smallInstall(dir string) cniinstall.Install {
	return cniinstall.Install{
		Plugins: fstest.MapFS{"cilium-cni": {Data: []byte(script("0.3.1"))}},
		BinDir:  filepath.Join(dir, "bin"), ConfDir: filepath.Join(dir, "net.d"), Config: cniinstall.Agent{},
		StateDir: filepath.Join(dir, "state"),
	}
}

// guardChild is such a process.
type guardChild struct {
	*exec.Cmd
	t     *testing.T
	conf  string
	stdin io.WriteCloser
	out   *bufio.Reader
}

func startGuard(t *testing.T, limit, dir string) *guardChild {
	c := &guardChild{Cmd: exec.Command("/proc/self/exe"), t: t, conf: filepath.Join(dir, "net.d/05-cilium.conflist")}
	c.Env = []string{runEnv + "=guard", dirEnv + "=" + dir, limitEnv + "=" + limit}
	c.Stderr = os.Stderr
	if limit != "" { // limits of its own are a user namespace's
		ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids}
	}
	stdin, err := c.StdinPipe()
	require.NoError(t, err)
	stdout, err := c.StdoutPipe()
	require.NoError(t, err)
	c.stdin, c.out = stdin, bufio.NewReader(stdout)
	if err := c.Start(); err != nil {
		testns.Skip(t, "no user namespace: "+err.Error())
	}
	t.Cleanup(func() { stdin.Close(); c.Wait() })
	require.Equal(t, "installed", c.line())
	return c
}

func (c *guardChild) line() string {
	line, err := c.out.ReadString('\n')
	require.NoError(c.t, err, line)
	return strings.TrimSpace(line)
}

// broken deletes the configuration and waits for the repair.
func (c *guardChild) broken() time.Duration {
	begin := time.Now()
	require.NoError(c.t, os.Remove(c.conf))
	require.Equal(c.t, "repaired write "+c.conf, c.line())
	return time.Since(begin)
}

// watches counts the process's inotify watches.
func (c *guardChild) watches() (n int) {
	infos, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", c.Process.Pid))
	require.NoError(c.t, err)
	for _, info := range infos {
		raw, _ := os.ReadFile(info)
		n += strings.Count(string(raw), "inotify wd:")
	}
	return n
}

// ran is how long the process's threads have run, by the scheduler's account,
// and how often they were switched to.
func (c *guardChild) ran() (time.Duration, int) {
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", c.Process.Pid))
	require.NoError(c.t, err)
	require.NotEmpty(c.t, stats)
	total, switches := 0, 0
	for _, stat := range stats {
		raw, err := os.ReadFile(stat)
		require.NoError(c.t, err)
		fields := strings.Fields(string(raw))
		ns, err := strconv.Atoi(fields[0])
		require.NoError(c.t, err)
		times, err := strconv.Atoi(fields[2])
		require.NoError(c.t, err)
		total, switches = total+ns, switches+times
	}
	return time.Duration(total), switches
}

// While nothing happens it does not run at all: no timer, no thread. Go's own
// runtime needs a while until it sleeps. The folders on the way are not those
// where other tests make theirs.
func TestCNI7_IdleUsesNoProcessorTime(t *testing.T) {
	testns.Enter(t, testns.Mount)
	require.NoError(t, unix.Mount("tmpfs", "/mnt", "tmpfs", 0, ""))
	require.NoError(t, os.Mkdir("/mnt/node", 0o755))
	c := startGuard(t, "", "/mnt/node")
	c.broken()
	var used time.Duration
	var switches int
	for range 10 {
		before, times := c.ran()
		<-time.After(2 * time.Second) // this is what is measured
		after, timesAfter := c.ran()
		if used, switches = after-before, timesAfter-times; used == 0 && switches == 0 {
			break
		}
	}
	t.Logf("in 2 s without an event: %v of processor time, %d times scheduled", used, switches)
	require.Zero(t, used)
	require.Zero(t, switches)
	require.Less(t, c.broken(), inTime(), "and it is awake")
}

// Where inotify is exhausted, really, the guard polls, and says how to help;
// where that is done, it watches again.
func TestCNI7_InotifyExhausted(t *testing.T) {
	testns.Root(t)
	for limit, hint := range map[string]string{
		"max_inotify_watches=3":   "no space left on device (raise fs.inotify.max_user_watches)",
		"max_inotify_instances=0": "too many open files (raise fs.inotify.max_user_instances, or the limit of open files)",
	} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			c := startGuard(t, limit, fastDir(t, "/bin/true"))
			trouble := c.line()
			require.Contains(t, trouble, hint)
			require.Contains(t, trouble, "the folders are looked at every 400ms")
			for range 3 {
				require.Less(t, c.broken(), inTime())
			}
			require.Zero(t, c.watches())
			_, err := io.WriteString(c.stdin, "lift the limit\n")
			require.NoError(t, err)
			require.Eventually(t, func() bool { return c.watches() > 0 }, slow, 10*time.Millisecond)
			require.Less(t, c.broken(), inTime())
			require.NoError(t, c.stdin.Close())
			require.Contains(t, c.line(), "ended guard CNI: context canceled")
		})
	}
}
