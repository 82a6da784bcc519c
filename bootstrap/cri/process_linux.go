// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/input"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// Bounds on reading about a process: its command line, its name and its status.
const (
	maxCommandLine = 1 << 20
	maxName        = 64
	maxStatus      = 64 << 10
)

// errStranger is matched by each reason why a process is not one of the host's root.
var errStranger = errors.New("it is not a process of the host's root")

// processes are those of a host, by its /proc.
//
// Any user can have a process with any name, any arguments and, with a set-user-id
// program, root's user id, and any container can have one of root's. A process is the
// host's root's if all of these hold, each of which excludes some impostor:
//
//   - its four user ids are 0, and it has every capability that pid 1 passes on:
//     pid 1's bounding set, since some hosts, such as Talos, take a few from all processes;
//   - it is in no pod, by its cgroup, and in the pid and user namespaces of pid 1. Its
//     mount namespace may be its own, as on OpenShift, Talos, RKE and MicroK8s;
//   - what it executes has no set-id bit and no capabilities, and is at a place where
//     only root can have put it: it was root who started it.
type processes struct {
	proc       string
	caps       uint64      // that pid 1 passes on
	pods       int         // number of pods that pid 1 itself is in: a node may be a pod's container
	users, ids fs.FileInfo // pid 1's namespaces
}

func openProcesses(ctx context.Context, proc string) (*processes, error) {
	p := &processes{proc: proc}
	first := filepath.Join(proc, "1")
	status, err := input.ReadFile(ctx, filepath.Join(first, "status"), maxStatus)
	if err == nil {
		p.caps, err = capabilities(status, "CapBnd")
	}
	if err == nil {
		p.pods, err = pods(ctx, first)
	}
	if err == nil {
		p.users, err = os.Stat(filepath.Join(first, "ns/user"))
	}
	if err == nil {
		p.ids, err = os.Stat(filepath.Join(first, "ns/pid"))
	}
	if err != nil {
		return nil, fmt.Errorf("pid 1 of the host: %w", unreadable(err))
	}
	return p, nil
}

// unreadable adds the missing capability if access to a process is denied.
func unreadable(err error) error {
	return remedy.Capabilities(err, "in the user namespace of pid 1", remedy.SysPtrace)
}

// all lists the processes, by number.
func (p *processes) all(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		dir, err := input.OpenDir(p.proc)
		if err != nil {
			yield("", err)
			return
		}
		defer dir.Close()
		for name, err := range input.Names(dir) {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if err == nil && strings.Trim(name, "0123456789") != "" {
				continue
			}
			if !yield(name, err) || err != nil {
				return
			}
		}
	}
}

// process is one that runs as root, and is in no pod.
type process struct {
	*processes
	pid string
	dir *os.File // its open directory in /proc: never that of a later process with the same number
}

// open opens a process, unless world-readable facts show that it is a stranger's.
func (p *processes) open(ctx context.Context, pid string) (*process, error) {
	dir, err := os.OpenFile(filepath.Join(p.proc, pid), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	one := &process{p, pid, dir}
	if err := one.isRoots(ctx); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return one, nil
}

func (p *process) Close() error { return p.dir.Close() }

func (p *process) path(name string) string { return again(p.dir) + "/" + name }

func (p *process) read(ctx context.Context, name string, limit int64) ([]byte, error) {
	return input.ReadFile(ctx, p.path(name), limit)
}

// isRoots checks users, capabilities and pods.
func (p *process) isRoots(ctx context.Context) error {
	status, err := p.read(ctx, "status", maxStatus)
	if err != nil {
		return err
	}
	has, err := capabilities(status, "CapEff")
	if err != nil {
		return err
	}
	if uids := strings.Fields(statusField(status, "Uid")); !slices.Equal(uids, []string{"0", "0", "0", "0"}) || has&p.caps != p.caps {
		return errStranger
	}
	in, err := pods(ctx, again(p.dir))
	if err == nil && in > p.pods {
		err = errStranger
	}
	return err
}

// prove returns an error unless the process is the host's root's. All facts read between
// an open and a prove concern one program, since it is still the same.
func (p *process) prove(ctx context.Context, image *os.File) error {
	for name, want := range map[string]fs.FileInfo{"ns/user": p.users, "ns/pid": p.ids} {
		is, err := os.Stat(p.path(name))
		if err != nil {
			return err
		}
		if !os.SameFile(is, want) {
			return fmt.Errorf("%w: it has another %s namespace than pid 1", errStranger, filepath.Base(name))
		}
	}
	if err := p.proveProgram(); err != nil {
		return err
	}
	// A user who can run one program as root and then another as himself could show us a
	// fact of each. A memory map ends when its program is no longer run; a child that
	// shares its memory for a while, after vfork(2), changes its user.
	if n, err := image.Read(make([]byte, 1)); n == 0 {
		return fmt.Errorf("%w: it is another program by now (%w)", errStranger, err)
	}
	return p.isRoots(ctx)
}

// image opens the map of what the process executes.
func (p *process) image() (*os.File, error) { return os.Open(p.path("maps")) }

// deleted is the suffix of the kernel's name for a program that was replaced while it
// runs.
const deleted = " (deleted)"

// program returns the name of the file that the process executes.
func (p *process) program() (string, error) {
	path, err := os.Readlink(p.path("exe"))
	return filepath.Base(strings.TrimSuffix(path, deleted)), err
}

// proveProgram checks the file that the process executes.
func (p *process) proveProgram() error {
	file, err := os.OpenFile(p.path("exe"), unix.O_PATH, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return err
	}
	capable, err := unix.Getxattr(again(file), "security.capability", nil)
	switch {
	case st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0:
		return fmt.Errorf("%w: its program has a set-id bit", errStranger)
	case err == nil && capable > 0:
		return fmt.Errorf("%w: its program has capabilities", errStranger)
	case err != nil && !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.ENOTSUP):
		return err
	case st.Uid != 0 && int(st.Uid) != os.Geteuid() || st.Mode&0o002 != 0:
		return fmt.Errorf("%w: its program can be changed by others", errStranger)
	}
	return p.proveReached(file)
}

// proveReached checks the directories above the program, in the process's own mount
// namespace. For a deleted program they may be gone too, with the rest of its version.
func (p *process) proveReached(program *os.File) error {
	path, err := os.Readlink(p.path("exe"))
	if err != nil {
		return err
	}
	root, err := os.OpenFile(p.path("root"), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer root.Close()
	top, err := os.Readlink(again(root))
	if err != nil {
		return err
	}
	path, isDeleted := strings.CutSuffix(strings.TrimPrefix(path, strings.TrimSuffix(top, "/")), deleted)
	if isDeleted {
		path = filepath.Dir(path)
	}
	at, err := durable.OpenVetted(root, path)
	for isDeleted && errors.Is(err, fs.ErrNotExist) && path != "/" {
		path = filepath.Dir(path)
		at, err = durable.OpenVetted(root, path)
	}
	if err != nil {
		return fmt.Errorf("%w: its program: %w", errStranger, err)
	}
	defer at.Close()
	if same, err := sameFile(at, program); err != nil || !same && !isDeleted {
		return errors.Join(fmt.Errorf("%w: its program is not at %q", errStranger, path), err)
	}
	return nil
}

func sameFile(a, b *os.File) (bool, error) {
	x, err := a.Stat()
	if err != nil {
		return false, err
	}
	y, err := b.Stat()
	return err == nil && os.SameFile(x, y), err
}

// statusField returns one of the fields of /proc/PID/status (proc_pid_status(5)). The
// process's name is among them; the kernel escapes line breaks in it.
func statusField(status []byte, name string) string {
	_, rest, _ := strings.Cut("\n"+string(status), "\n"+name+":")
	value, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(value)
}

func capabilities(status []byte, set string) (uint64, error) {
	caps, err := strconv.ParseUint(statusField(status, set), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("read the status of a process: %s: %w", set, err)
	}
	return caps, nil
}

// ofPods finds the names of the cgroups that a kubelet makes, below whatever cgroup it is
// configured with. All contain kubepods, except those of single pods with the driver
// cgroupfs, which is how a pod sees others from its own cgroup namespace: /../podUID.
var ofPods = regexp.MustCompile(`kubepods|/pod[0-9a-f]{8}`)

// pods counts the nested cgroups of pods that a process is in.
func pods(ctx context.Context, dir string) (deepest int, err error) {
	cgroups, err := input.ReadFile(ctx, filepath.Join(dir, "cgroup"), maxStatus)
	for line := range strings.Lines(string(cgroups)) {
		deepest = max(deepest, len(ofPods.FindAllString(line, -1)))
	}
	return deepest, err
}

// isGone reports whether an error means that a process has ended.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }
