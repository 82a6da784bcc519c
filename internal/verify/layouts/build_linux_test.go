// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package layouts_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/critest"
	"github.com/slipway-dev/slipway/internal/testns"
)

// work is where the node has the programs of the test.
const work = "/tmp/work"

// node is a throw-away node with a layout.
type node struct {
	*testns.Node
	t       testing.TB
	layout  layout
	plugins string // where the runtime has found our configuration
}

// build makes the node. Programs are in dir, on the machine.
func build(t testing.TB, l layout, dir string) *node {
	t.Helper()
	started, err := testns.StartNode(t.Context(), testns.NodeOptions{Hostname: l.name, Root: func(root string) error { return l.root(root, dir) }})
	require.NoError(t, err)
	n := &node{Node: started, t: t, layout: l}
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	n.do(func() error {
		for _, m := range l.all("mount") {
			if strings.HasPrefix(m.args[0], "/sys/") {
				if err := unix.Mount(m.args[1], m.args[0], m.args[1], mountFlags(m.args[2:]), "mode="+option(m.args[2:], "mode")); err != nil {
					return fmt.Errorf("mount %s: %w", m.args[0], err)
				}
			}
		}
		// The values of a new network namespace depend on the machine's.
		for _, link := range []string{"all", "default", "lo"} {
			if err := os.WriteFile("/proc/sys/net/ipv4/conf/"+link+"/rp_filter", []byte("2"), 0); err != nil {
				return err
			}
		}
		return nil
	})
	n.runtimes()
	n.processes()
	return n
}

// root makes the root file system. It runs before the node enters its own root, which is
// still a directory then.
func (l layout) root(root, dir string) error {
	for _, n := range slices.Concat(l.lines, []line{{verb: "dir", args: []string{work, "0755"}}, {verb: "dir", args: []string{"/dev", "0755"}}, {verb: "dir", args: []string{"/proc", "0555"}}, {verb: "dir", args: []string{"/sys", "0555"}}}) {
		if err := l.make(root, dir, n); err != nil {
			return fmt.Errorf("%s %s: %w", n.verb, n.args, err)
		}
	}
	if err := unix.Mount(dir, filepath.Join(root, work), "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s: %w", work, err)
	}
	return l.finish(root)
}

func (l layout) make(root, dir string, n line) error {
	path := filepath.Join(root, cmp.Or(append(n.args, "")[0], "."))
	switch n.verb {
	case "mount":
		if strings.HasPrefix(n.args[0], "/sys/") {
			return nil
		}
		return mount(root, path, n.args[1], n.args[2:])
	case "dir", "file":
		mode, err := strconv.ParseUint(n.args[1], 8, 32)
		if err != nil {
			return err
		}
		if n.verb == "dir" {
			uid, gid := 0, 0
			if len(n.args) > 2 {
				_, err = fmt.Sscanf(n.args[2], "%d:%d", &uid, &gid)
			}
			return errors.Join(err, os.MkdirAll(path, 0o755), unix.Chown(path, uid, gid), unix.Chmod(path, uint32(mode)))
		}
		content := []byte(l.files[n.args[0]])
		if len(content) == 0 && mode&0o111 != 0 {
			if content, err = os.ReadFile(filepath.Join(dir, "standin")); err != nil {
				return err
			}
		}
		return errors.Join(os.WriteFile(path, content, 0o644), unix.Chmod(path, uint32(mode)))
	case "link":
		return os.Symlink(n.args[1], path)
	}
	return nil
}

// mount makes a file system at path; the root directory itself exists.
func mount(root, path, kind string, options []string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	flags := mountFlags(options) &^ unix.MS_RDONLY // in the end
	switch kind {
	case "image", "disk", "tmpfs":
		if path == filepath.Clean(root) {
			return nil
		}
		return unix.Mount(kind, path, "tmpfs", flags, "mode=755")
	case "bind":
		return unix.Mount(filepath.Join(root, option(options, "from")), path, "", unix.MS_BIND|unix.MS_REC, "")
	case "overlay":
		upper := filepath.Join(root, option(options, "upper"))
		if err := errors.Join(os.MkdirAll(upper, 0o755), os.MkdirAll(upper+".work", 0o755)); err != nil {
			return err
		}
		lower := filepath.Join(root, option(options, "lower"))
		return unix.Mount("overlay", path, "overlay", flags, "lowerdir="+lower+",upperdir="+upper+",workdir="+upper+".work")
	}
	return fmt.Errorf("unknown kind %q", kind)
}

// finish makes the read-only file systems read-only.
func (l layout) finish(root string) error {
	for _, m := range slices.Backward(l.all("mount")) {
		path, flags := filepath.Join(root, m.args[0]), mountFlags(m.args[2:])
		var err error
		switch {
		case m.args[1] == "image": // the file system itself, also where it is mounted elsewhere
			err = unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_RDONLY|flags, "")
		case flags&unix.MS_RDONLY != 0, m.args[1] == "bind":
			err = unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|flags, "")
		}
		if err != nil {
			return fmt.Errorf("remount %s: %w", m.args[0], err)
		}
	}
	return nil
}

func option(options []string, name string) string {
	for _, o := range options {
		if value, found := strings.CutPrefix(o, name+"="); found {
			return value
		}
	}
	return ""
}

func mountFlags(options []string) (flags uintptr) {
	for name, flag := range map[string]uintptr{"ro": unix.MS_RDONLY, "nosuid": unix.MS_NOSUID, "nodev": unix.MS_NODEV, "noexec": unix.MS_NOEXEC} {
		if slices.Contains(options, name) {
			flags |= flag
		}
	}
	return flags
}

// do runs f in the node's namespaces.
func (n *node) do(f func() error) {
	n.t.Helper()
	require.NoError(n.t, n.Do(context.Background(), func(context.Context) error { return f() }))
}

// runtimes starts runtimes that listen and report where they look.
func (n *node) runtimes() {
	n.t.Helper()
	for _, r := range n.layout.all("containerd", "crio", "nocri") {
		l, err := n.Listen(r.args[0])
		require.NoError(n.t, err)
		critest.Serve(n.t, l, answers(r))
	}
}

func answers(r line) http.Handler {
	switch r.verb {
	case "containerd":
		return critest.Runtime{Info: critest.Containerd(nil, r.args[1], r.args[2:]...)}
	case "crio":
		quoted := make([]string, len(r.args)-2)
		for i, dir := range r.args[2:] {
			quoted[i] = strconv.Quote(dir)
		}
		return critest.Runtime{Config: fmt.Sprintf("[crio.network]\nnetwork_dir = %q\nplugin_dirs = [%s]\n", r.args[1], strings.Join(quoted, ", "))}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { // it has no CRI
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Grpc-Status", "12")
	})
}

// processes starts processes under the names that the kernel shows, which are the base
// names of their programs.
func (n *node) processes() {
	n.t.Helper()
	for _, p := range n.layout.all("process", "container") {
		cmd := exec.Command(filepath.Join(work, "run", p.args[0]))
		cmd.Args = p.args[1:]
		if p.verb == "container" {
			cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
		}
		stdin, err := cmd.StdinPipe()
		require.NoError(n.t, err)
		require.NoError(n.t, n.StartCommand(cmd))
		wait := sync.OnceValue(cmd.Wait)
		n.t.Cleanup(func() {
			_ = stdin.Close()
			require.NoError(n.t, wait())
		})
		comm := fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid)
		require.Eventually(n.t, func() bool { // between fork and exec it has another name
			name, err := os.ReadFile(comm)
			return err == nil && strings.TrimSpace(string(name)) == p.args[0]
		}, time.Minute, time.Millisecond)
	}
}
