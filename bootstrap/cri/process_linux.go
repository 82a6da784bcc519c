// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/process"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// errStranger is matched by each reason why a process is not one of the host's root.
var errStranger = errors.New("it is not a process of the host's root")

// processes are those of a host, by its /proc.
//
// Any user can have a process with any name, any arguments and, with a set-user-id
// program, root's user id, and any container can have one of root's. Each condition of the
// package's comment excludes some impostor. The capabilities are those of pid 1's bounding
// set, since some hosts, such as Talos, take a few from all processes. The mount namespace
// may be another, as on OpenShift, Talos, RKE and MicroK8s.
type processes struct {
	proc   string
	first  process.Process
	status process.Status // of the first
	pods   int            // nested ones that the first is in: a node may be a pod's container
}

func openProcesses(ctx context.Context, proc string) (*processes, error) {
	p := &processes{proc: proc, first: process.Process{PID: 1, Proc: proc}}
	var err error
	if p.status, err = p.first.Status(ctx); err == nil {
		p.pods, err = pods(ctx, p.first)
	}
	if err != nil {
		return nil, fmt.Errorf("pid 1 of the host: %w", err)
	}
	return p, nil
}

// ofPods finds the names of the cgroups that a kubelet makes, below whatever cgroup it is
// configured with. All contain kubepods, except those of single pods with the driver
// cgroupfs, which is how a pod sees others from its own cgroup namespace: /../podUID.
var ofPods = regexp.MustCompile(`kubepods|/pod[0-9a-f]{8}`)

// pods counts the nested cgroups of pods that a process is in. A pod may have made the
// last element of a path, with any name.
func pods(ctx context.Context, one process.Process) (deepest int, err error) {
	cgroups, err := one.Read(ctx, "cgroup")
	for line := range strings.Lines(cgroups) {
		deepest = max(deepest, len(ofPods.FindAllString(line, -1)))
	}
	return deepest, err
}

// isRoots returns an error if world-readable facts show that a process is a stranger's.
func (p *processes) isRoots(ctx context.Context, one process.Process) error {
	s, err := one.Status(ctx)
	if err != nil {
		return err
	}
	in, err := pods(ctx, one)
	if err == nil && (!s.RunsAs(0) || s.Effective&p.status.Bounding != p.status.Bounding || in > p.pods) {
		err = errStranger
	}
	return err
}

// prove returns an error unless the process is the host's root's. What is read between
// opening the image, which is the map of the program that it executes, and a prove
// concerns this one program.
func (p *processes) prove(ctx context.Context, one process.Process, image *os.File) error {
	for _, name := range []string{"ns/user", "ns/pid"} {
		if same, err := sameFile(one.Path(name), p.first.Path(name)); err != nil || !same {
			return cmp.Or(err, errStranger)
		}
	}
	if err := proveProgram(one); err != nil {
		return err
	}
	// A user who can run one program as root and then another as himself could show us a
	// fact of each. A memory map ends when its program is no longer run; a child that
	// shares its memory for a while, after vfork(2), changes its user.
	if n, _ := image.Read(make([]byte, 1)); n == 0 {
		return errStranger
	}
	return p.isRoots(ctx, one)
}

// proveProgram checks the file that the process executes.
func proveProgram(one process.Process) error {
	file, err := os.OpenFile(one.Path("exe"), unix.O_PATH, 0)
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
	case err != nil && !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.ENOTSUP):
		return err
	case err == nil && capable > 0, st.Mode&(unix.S_ISUID|unix.S_ISGID|0o002) != 0, st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return errStranger
	}
	return proveReached(one, file)
}

// proveReached checks the directories above the program, in the process's own mount
// namespace. If the program was replaced while it runs, they may be gone too, with the
// rest of its version.
func proveReached(one process.Process, program *os.File) error {
	path, err := os.Readlink(one.Path("exe"))
	if err != nil {
		return err
	}
	root, err := openRoot(one)
	if err != nil {
		return err
	}
	defer root.Close()
	top, err := os.Readlink(again(root))
	if err != nil {
		return err
	}
	path, isDeleted := strings.CutSuffix(strings.TrimPrefix(path, strings.TrimSuffix(top, "/")), " (deleted)")
	if isDeleted {
		path = filepath.Dir(path)
	}
	at, err := durable.OpenVetted(root, path)
	for isDeleted && errors.Is(err, fs.ErrNotExist) && path != "/" {
		path = filepath.Dir(path)
		at, err = durable.OpenVetted(root, path)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errStranger, err)
	}
	defer at.Close()
	if same, err := sameFile(again(at), again(program)); err != nil || !same && !isDeleted {
		return cmp.Or(err, errStranger)
	}
	return nil
}

// openRoot opens the root directory of a process, in which paths resolve as they do there:
// an absolute link on the way, as /var/run often is, leads to its /run, not to ours.
func openRoot(one process.Process) (*os.File, error) {
	root, err := os.OpenFile(one.Path("root"), unix.O_PATH|unix.O_DIRECTORY, 0)
	return root, remedy.Capabilities(err, "in the user namespace of the process", remedy.SysPtrace)
}

func sameFile(a, b string) (bool, error) {
	x, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y), err
}
