// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

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
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cleanup/internal/filetree"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/filemode"
	"github.com/slipway-dev/slipway/internal/process"
)

// agentAlive looks at processes first, since that evidence names a process to stop.
func (o Ownership) agentAlive(ctx context.Context, b *ledger.Book) error {
	owner := func(ctx context.Context) (string, error) { return ownerAlive(ctx, b) }
	var unknown error
	for _, look := range []func(context.Context) (string, error){o.running, o.executing, owner, o.locking, o.listening} {
		seen, err := look(ctx)
		if seen != "" {
			return fmt.Errorf("%w: %s: stop it first", ErrAgentAlive, seen)
		}
		if unknown == nil {
			unknown = err
		}
	}
	if unknown != nil {
		return fmt.Errorf("cleanup: look for a running agent: %w", unknown)
	}
	return nil
}

// ownerAlive looks for the owner of the ledger's agent.
func ownerAlive(ctx context.Context, b *ledger.Book) (seen string, err error) {
	agents, err := b.Agents(ctx)
	name, _ := b.Mark()
	for _, a := range agents {
		if a.Name == name {
			return a.Alive, a.AliveErr
		}
	}
	return "", err
}

// running looks for the processes that the pid files name.
func (o Ownership) running(ctx context.Context) (seen string, err error) {
	if len(o.Executables) == 0 {
		return "", nil
	}
	self, _ := process.Self()
	return o.eachPidFile(func(f pidFile) (string, error) {
		number, ok := f.number()
		if !ok {
			return "", nil
		}
		return find(ctx, f.believed, func(p process.Process, s process.Status) (string, error) {
			if s.Innermost != number || p == self || p.PID == 1 { // the number of a container's agent is often 1
				return "", nil
			}
			is, err := o.isAgent(p, s, f)
			if !is || err != nil {
				return "", err
			}
			return fmt.Sprintf("process %d (%s) runs, and is process %d that %s names", p.PID, s.Name, number, f.path), nil
		})
	})
}

// executing looks for processes in this network namespace that run the program of an agent
// without a pid file. Those in other namespaces are of nodes in containers.
func (o Ownership) executing(ctx context.Context) (seen string, err error) {
	if len(o.Executables) == 0 || len(o.PidFiles) > 0 {
		return "", nil
	}
	here, err := os.Stat("/proc/thread-self/ns/net")
	if err != nil {
		return "", err
	}
	return find(ctx, []int{0, os.Geteuid()}, func(p process.Process, s process.Status) (string, error) {
		if is, err := o.runs(p, s); !is || err != nil {
			return "", err
		}
		if its, err := os.Stat(fmt.Sprintf("/proc/%d/ns/net", p.PID)); err != nil || !os.SameFile(here, its) {
			return "", err
		}
		return fmt.Sprintf("process %d (%s) runs", p.PID, s.Name), nil
	})
}

// runs reports whether the process runs the agent's program.
func (o Ownership) runs(p process.Process, s process.Status) (bool, error) {
	program, err := p.Program()
	if errors.Is(err, fs.ErrPermission) && !slices.ContainsFunc(o.Executables, s.Called) {
		return false, nil // only its name can be read, and it is not the agent's
	}
	return err == nil && slices.Contains(o.Executables, program), err
}

// isAgent reports whether the process runs the agent's program and sees the pid file.
func (o Ownership) isAgent(p process.Process, s process.Status, f pidFile) (bool, error) {
	if is, err := o.runs(p, s); !is || err != nil {
		return false, err
	}
	its, err := p.Open(f.path)
	if err != nil {
		return false, err
	}
	defer its.Close()
	info, err := its.Stat()
	return err == nil && os.SameFile(info, f.info), err
}

// locking looks for locks on the pid files. On a file that untrusted users can open, a
// lock counts only if a process like an agent's holds it, even if another process took
// it.
func (o Ownership) locking(ctx context.Context) (seen string, err error) {
	return o.eachPidFile(func(f pidFile) (string, error) {
		locked, err := f.locked()
		if !locked || err != nil {
			return "", err
		}
		if !f.opensToStrangers() {
			return f.path + " is locked", nil
		}
		return find(ctx, f.believed, func(p process.Process, s process.Status) (string, error) {
			if program, err := p.Program(); program == "" {
				return "", err
			}
			holds, err := p.HoldsLock(ctx, uint64(f.stat.Dev), f.stat.Ino)
			if !holds || err != nil {
				return "", err
			}
			return fmt.Sprintf("%s is locked by process %d (%s)", f.path, p.PID, s.Name), nil
		})
	})
}

// pidFile is a pid file that is open.
type pidFile struct {
	*os.File
	path string
	info fs.FileInfo
	stat *syscall.Stat_t

	// believed are the users of whom the agent can be one: root, this process's, and
	// the file's owner unless everybody may write to its directory.
	believed []int
}

// eachPidFile calls look for each existing pid file, until one shows something.
func (o Ownership) eachPidFile(look func(pidFile) (string, error)) (seen string, err error) {
	for _, path := range o.PidFiles {
		f, err := openPidFile(path)
		if err != nil {
			return "", err
		}
		if f.File == nil {
			continue
		}
		seen, err := look(f)
		f.Close()
		if err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
		if seen != "" || err != nil {
			return seen, err
		}
	}
	return "", nil
}

// lookAt returns a file's information and its directory, which is nil if there is no such
// file.
func lookAt(path string) (d *durable.Dir, info fs.FileInfo, err error) {
	d, err = durable.OpenDir(filepath.Dir(path))
	if err != nil {
		return nil, nil, filetree.NotThere(err)
	}
	info, err = d.Lstat(filepath.Base(path))
	if err != nil {
		d.Close()
		return nil, nil, filetree.NotThere(err)
	}
	return d, info, nil
}

// openPidFile returns the zero value if there is no such file.
func openPidFile(path string) (f pidFile, err error) {
	d, info, err := lookAt(path)
	if d == nil {
		return f, err
	}
	defer d.Close()
	if !info.Mode().IsRegular() {
		return f, fmt.Errorf("%s: it is a %s, not a regular file", path, filemode.Type(info.Mode()))
	}
	file, err := d.Open(filepath.Base(path))
	if err != nil {
		return f, err
	}
	f = pidFile{File: file, path: path, info: info, stat: info.Sys().(*syscall.Stat_t), believed: []int{0, os.Geteuid()}}
	if directory, err := d.Stat(); err == nil && directory.Mode().Perm()&0o002 == 0 {
		f.believed = append(f.believed, int(f.stat.Uid))
	}
	return f, nil
}

// number returns the pid that the file names, in the pid namespace of its writer.
func (f pidFile) number() (pid int, ok bool) {
	text := make([]byte, 32)
	n, _ := f.ReadAt(text, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n])))
	return pid, err == nil && pid > 0
}

// find calls look for the processes of users that are believed.
func find(ctx context.Context, believed []int, look func(process.Process, process.Status) (string, error)) (seen string, err error) {
	for p, err := range process.All(ctx) {
		if err != nil {
			return "", err
		}
		s, err := p.Status(ctx)
		if err == nil && s.RunsAs(believed...) {
			seen, err = look(p, s)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has ended, or does not see the file
		}
		if seen != "" || err != nil {
			return seen, err
		}
	}
	return "", nil
}

// locked reports whether the file is locked, and waits for no lock.
func (f pidFile) locked() (bool, error) {
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return false, fmt.Errorf("lock: %w", err)
	}
	if lock.Type != unix.F_UNLCK {
		return true, nil
	}
	// A shared lock, so that two concurrent checks do not detect each other. It ends with
	// the descriptor.
	err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err != nil && !errors.Is(err, unix.EWOULDBLOCK) {
		return false, fmt.Errorf("lock: %w", err)
	}
	return err != nil, nil
}

// opensToStrangers reports whether an untrusted user can open the file, and so lock it.
func (f pidFile) opensToStrangers() bool {
	foreignGroup := f.stat.Gid != 0 && int(f.stat.Gid) != os.Getegid()
	return !slices.Contains(f.believed, int(f.stat.Uid)) || f.stat.Mode&0o006 != 0 || f.stat.Mode&0o060 != 0 && foreignGroup
}

// listening looks for sockets on which a process still accepts connections.
func (o Ownership) listening(context.Context) (seen string, err error) {
	for _, path := range o.Sockets {
		listens, err := connects(path)
		if err != nil {
			return "", fmt.Errorf("connect to %s: %w", path, err)
		}
		if listens {
			return "a process listens at " + path, nil
		}
	}
	return "", nil
}

// connects reports whether a connection to the socket is taken, or would be when it is
// its turn. A socket that a stranger has made is not the agent's.
func connects(path string) (bool, error) {
	d, info, err := lookAt(path)
	if d == nil {
		return false, err
	}
	defer d.Close()
	if uid := int(info.Sys().(*syscall.Stat_t).Uid); info.Mode().Type() != fs.ModeSocket || uid != 0 && uid != os.Geteuid() {
		return false, nil
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	switch err = unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err {
	case nil, unix.EAGAIN: // its queue is full
		return true, nil
	case unix.ECONNREFUSED, unix.ENOENT:
		return false, nil
	}
	return false, err
}
