// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/input"
	"github.com/slipway-dev/slipway/internal/remedy"
)

const proc = "/proc"

// maxFile is more than the kernel writes about a process: its status lists 65,536 groups
// at most.
const maxFile = 1 << 20

// All yields all processes, in no order, and the error that stopped it early.
func All(ctx context.Context) iter.Seq2[Process, error] { return In(ctx, "") }

// In yields all processes of the /proc that is mounted there, as All does.
func In(ctx context.Context, mounted string) iter.Seq2[Process, error] {
	return func(yield func(Process, error) bool) {
		dir, err := input.OpenDir(cmp.Or(mounted, proc))
		if err != nil {
			yield(Process{}, err)
			return
		}
		defer dir.Close()
		for name, err := range input.Names(dir) {
			if err == nil && ctx.Err() != nil {
				err = fmt.Errorf("list the processes: %w", context.Cause(ctx))
			}
			pid, notOne := strconv.Atoi(name)
			if err == nil && notOne != nil {
				continue
			}
			if !yield(Process{pid, mounted}, err) || err != nil {
				return
			}
		}
	}
}

// Self returns this process. A /proc that does not show it, since it is of a pid
// namespace below, is an error that matches [fs.ErrNotExist].
func Self() (Process, error) {
	name, err := os.Readlink(proc + "/self")
	if err != nil {
		return Process{}, err
	}
	pid, err := strconv.Atoi(name)
	return Process{PID: pid}, err
}

// Path returns the path of one of the process's files.
func (p Process) Path(name string) string {
	return filepath.Join(cmp.Or(p.Proc, proc), strconv.Itoa(p.PID), name)
}

// Read reads one of the process's files. For an ended process the kernel's error is ENOENT
// or, if the file was open already, ESRCH.
func (p Process) Read(ctx context.Context, name string) (string, error) {
	content, err := input.ReadFile(ctx, p.Path(name), maxFile)
	return string(content), gone(err)
}

func gone(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return err
}

// Status returns the world-readable part of the process's state.
func (p Process) Status(ctx context.Context) (Status, error) {
	text, err := p.Read(ctx, "status")
	if err != nil {
		return Status{}, err
	}
	s := Status{Innermost: p.PID} // before Linux 4.1 it is not reported
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		fields := strings.Fields(value)
		if len(fields) == 0 {
			continue
		}
		switch key {
		case "Name":
			s.Name = strings.TrimSpace(value)
		case "State":
			s.Dead = fields[0] == "Z" || fields[0] == "X"
		case "Uid":
			err = s.setUIDs(fields)
		case "NSpid":
			s.Innermost, err = strconv.Atoi(fields[len(fields)-1])
		case "CapEff":
			s.Effective, err = strconv.ParseUint(fields[0], 16, 64)
		case "CapBnd":
			s.Bounding, err = strconv.ParseUint(fields[0], 16, 64)
		}
		if err != nil {
			return Status{}, fmt.Errorf("%s: %w", p.Path("status"), err)
		}
	}
	return s, nil
}

func (s *Status) setUIDs(fields []string) (err error) {
	if len(fields) != len(s.UIDs) {
		return fmt.Errorf("%d user ids", len(fields))
	}
	for i, field := range fields {
		if s.UIDs[i], err = strconv.Atoi(field); err != nil {
			return err
		}
	}
	return nil
}

// Start returns when the process started, in clock ticks since the boot. With its number
// and the boot, that identifies it.
func (p Process) Start(ctx context.Context) (uint64, error) {
	text, err := p.Read(ctx, "stat")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(text[strings.LastIndex(text, ")")+1:]) // the name may have any character
	const start = 22 - 3                                            // as proc_pid_stat(5) counts: the field after the name is the third
	if len(fields) <= start {
		return 0, fmt.Errorf("%s has %d fields after the name", p.Path("stat"), len(fields))
	}
	return strconv.ParseUint(fields[start], 10, 64)
}

// Cgroups returns the paths of the cgroups in which the process is, one for each
// hierarchy, from the root of the calling thread's cgroup namespace. None is of a
// cgroup that has been removed.
func (p Process) Cgroups(ctx context.Context) (paths []string, err error) {
	text, err := p.Read(ctx, "cgroup")
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if fields := strings.SplitN(line, ":", 3); len(fields) == 3 && !strings.HasSuffix(line, " (deleted)") {
			paths = append(paths, fields[2])
		}
	}
	return paths, err
}

// Program returns the name of the file that the process executes, without its
// directory, also if the file has been removed. For a set-user-id or set-group-id
// program, whose starter chooses its descriptors and its name, the result is empty.
func (p Process) Program() (string, error) {
	path, err := os.Readlink(p.Path("exe"))
	if err != nil {
		return "", p.permitted(err)
	}
	st, err := stat(p.Path("exe"))
	if err != nil {
		return "", p.permitted(err)
	}
	if st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
		return "", nil
	}
	return strings.TrimSuffix(filepath.Base(path), " (deleted)"), nil
}

// Open opens an absolute path in the process's own root directory, as a reference only
// (O_PATH).
func (p Process) Open(path string) (*os.File, error) {
	root, err := os.OpenFile(p.Path("root"), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, p.permitted(err)
	}
	defer root.Close()
	return OpenIn(root, path)
}

// OpenIn opens a path below a root directory, which links do not leave, as a reference
// only (O_PATH).
func OpenIn(root *os.File, path string) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	for {
		fd, err := unix.Openat2(int(root.Fd()), path, &how)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN): // something on the way was renamed
		default:
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// HoldsLock reports whether the process holds a lock of flock(2) or fcntl(2) on a file,
// even if another process took it: a lock goes with the open file, which a child
// inherits.
func (p Process) HoldsLock(ctx context.Context, dev, inode uint64) (bool, error) {
	dir, err := input.OpenDir(p.Path("fdinfo"))
	if err != nil {
		return false, p.permitted(gone(err))
	}
	defer dir.Close()
	for name, err := range input.Names(dir) {
		if err != nil {
			return false, gone(err)
		}
		info, err := p.Read(ctx, "fdinfo/"+name)
		if err != nil || !strings.Contains(info, "\nlock:") {
			continue // it has been closed, mostly
		}
		if st, err := stat(p.Path("fd/" + name)); err == nil && unix.Mkdev(st.Dev_major, st.Dev_minor) == dev && st.Ino == inode {
			return true, nil
		}
	}
	return false, ctx.Err()
}

// stat describes a file from cached attributes: a user's file system may not answer.
func stat(path string) (st unix.Statx_t, err error) {
	err = unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_DONT_SYNC, unix.STATX_MODE|unix.STATX_INO, &st)
	if err != nil {
		err = &fs.PathError{Op: "stat", Path: path, Err: gone(err)}
	}
	return st, err
}

func (Process) permitted(err error) error {
	return remedy.Capabilities(err, "in the user namespace of the process", remedy.SysPtrace)
}
