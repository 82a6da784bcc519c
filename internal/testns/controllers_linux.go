// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package testns

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// hierarchy is a hierarchy of cgroups version 1.
type hierarchy struct {
	point   string // where the machine has it mounted
	options string // options that identify it: "cpu,cpuacct", "name=systemd"
}

func hierarchies(mounts []mountinfo.Mount) (all []hierarchy) {
	seen := map[string]bool{}
	for _, m := range mounts {
		if m.FSType != "cgroup" || seen[m.Dev] {
			continue
		}
		seen[m.Dev] = true
		// The other options concern its behaviour, which a second mount cannot set.
		options := slices.DeleteFunc(strings.Split(m.Super, ","), func(o string) bool {
			return slices.Contains([]string{"rw", "ro", "xattr", "clone_children"}, o) || strings.HasPrefix(o, "release_agent=")
		})
		all = append(all, hierarchy{m.Point, strings.Join(options, ",")})
	}
	return all
}

// addFirst makes the node's cgroup in each hierarchy.
func (c *cgroup) addFirst(all []hierarchy) error {
	c.first = all
	for _, h := range all {
		tasks, err := h.add(filepath.Base(c.path))
		if err != nil {
			return fmt.Errorf("make a cgroup: %w", err)
		}
		c.joined = append(c.joined, tasks)
	}
	return nil
}

// add makes a cgroup, and opens the file through which it accepts threads.
func (h hierarchy) add(name string) (tasks *os.File, err error) {
	path := filepath.Join(h.point, name)
	if err := os.Mkdir(path, 0o755); err != nil {
		return nil, err
	}
	// A cpuset without processors and memory accepts no process.
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(h.point, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(path, name), value, 0o644)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return os.OpenFile(filepath.Join(path, "tasks"), os.O_WRONLY, 0)
}

// join moves the calling thread, and so the programs that it starts, into the cgroups of
// version 1. The thread must end with its goroutine.
func (c *cgroup) join() error {
	for _, tasks := range c.joined {
		if _, err := tasks.WriteString("0"); err != nil {
			return fmt.Errorf("enter the node's cgroup: %w", err)
		}
	}
	return nil
}

// onJoinedThread runs f on a thread that is in these cgroups and ends with f.
func (c *cgroup) onJoinedThread(f func() error) error {
	if len(c.joined) == 0 {
		return f()
	}
	return hostns.Do(context.Background(), "/proc/self", []string{"uts"}, func(context.Context) error {
		if err := c.join(); err != nil {
			return err
		}
		return f()
	})
}

// mountHierarchies puts the machine's layout at /sys/fs/cgroup: each hierarchy
// of version 1 in a directory, and cgroup2 beside them, all from the node's own
// cgroup down.
func (s setup) mountHierarchies() error {
	if len(s.first) == 0 {
		return nil
	}
	base := filepath.Join(stage, "sys/fs/cgroup")
	if err := unix.Unmount(base, 0); err != nil {
		return fmt.Errorf("unmount %s: %w", base, err)
	}
	if err := mount("cgroup", base, "tmpfs", hardened, "mode=755"); err != nil {
		return err
	}
	second := hierarchy{point: "unified"}
	for _, h := range append(slices.Clone(s.first), second) {
		dir, fstype := filepath.Join(base, filepath.Base(h.point)), "cgroup"
		if h == second {
			fstype = "cgroup2"
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if err := mount(fstype, dir, fstype, hardened, h.options); err != nil {
			return err
		}
	}
	return nil
}

// delegate gives the cgroups below the node's own every controller that its own has, and
// moves pid 1 into one of them.
func (c *cgroup) delegate(pid1 int) (err error) {
	text, err := os.ReadFile(filepath.Join(c.path, "cgroup.controllers"))
	controllers := strings.Fields(string(text))
	if err == nil && len(controllers) == 0 {
		err = fmt.Errorf("%s has none for cgroups below it (cgroup.subtree_control; systemd lists there what it uses): %w",
			filepath.Dir(c.path), errors.ErrUnsupported)
	}
	path := filepath.Join(c.path, "init")
	for _, step := range []func() error{
		func() error { return os.Mkdir(path, 0o755) },
		func() error { c.init, err = os.Open(path); return err },
		func() error { return os.WriteFile(filepath.Join(path, "cgroup.procs"), []byte(strconv.Itoa(pid1)), 0) },
		func() error {
			return os.WriteFile(filepath.Join(c.path, "cgroup.subtree_control"), []byte("+"+strings.Join(controllers, " +")), 0)
		},
	} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		return fmt.Errorf("delegate controllers: %w", err)
	}
	return nil
}
