// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/input"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// passes is how often the kernel is asked for its list of sockets. It returns the list a
// page at a time, and finds its place again by counting, so it skips a socket if others
// before it were closed meanwhile (unix_seq_next in net/unix/af_unix.c). While a user
// keeps opening and closing sockets, one in a few thousand lists lacks a socket.
const passes = 4

// names lists the paths to which sockets that accept connections were bound, in the
// network namespace of pid 1 and any mount namespace, each several times.
//
// The creator of a socket chooses its path, which may contain line breaks and imitate
// lines of other sockets: a listed path proves nothing.
func (p *processes) names(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for range passes {
			if !p.list(ctx, yield) {
				return
			}
		}
	}
}

func (p *processes) list(ctx context.Context, yield func(string, error) bool) bool {
	table, err := os.Open(filepath.Join(p.proc, "1", "net", "unix"))
	if err != nil {
		yield("", err)
		return false
	}
	defer table.Close()
	for path, err := range listed(input.WithContext(ctx, table)) {
		if !yield(path, err) || err != nil {
			return false
		}
	}
	return true
}

// accepting is the flag of a listening socket (__SO_ACCEPTCON in linux/net.h).
const accepting = 1 << 16

// listed reads a table in the form of /proc/net/unix (proc_pid_net(5)):
//
//	Num RefCount Protocol Flags Type St Inode Path
func listed(table io.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		lines := bufio.NewScanner(table)
		for lines.Scan() {
			f := strings.SplitN(strings.TrimLeft(lines.Text(), " "), " ", 7)
			if len(f) < 7 {
				continue
			}
			_, path, _ := strings.Cut(strings.TrimLeft(f[6], " "), " ")
			flags, err := strconv.ParseUint(f[3], 16, 64)
			if err != nil || flags&accepting == 0 || !filepath.IsAbs(path) {
				continue
			}
			if !yield(path, nil) {
				return
			}
		}
		if lines.Err() != nil {
			yield("", lines.Err())
		}
	}
}

// held lists the listening sockets that processes which may be the host's root's have
// open; denied holds the errors for processes that could not be examined.
func (p *processes) held(ctx context.Context) (all []bound, denied, err error) {
	holders, denied := p.sockets(ctx)
	seen := map[uint64]bool{}
	for range passes {
		for b, err := range p.bound(ctx) {
			if err != nil {
				return nil, denied, err
			}
			if b.holders = holders[b.socket]; len(b.holders) > 0 && !seen[b.socket] {
				seen[b.socket], all = true, append(all, b)
			}
		}
	}
	return all, denied, nil
}

// sockets returns, by inode, the open sockets of the processes that may be the host's
// root's. It skips what it cannot read; denied holds the errors.
func (p *processes) sockets(ctx context.Context) (holders map[uint64][]string, denied error) {
	holders = map[uint64][]string{}
	for pid, err := range p.all(ctx) {
		if err != nil {
			return holders, err
		}
		one, err := p.open(ctx, pid)
		if err != nil {
			continue // a stranger's, or gone
		}
		for inode, err := range one.sockets() {
			if errors.Is(err, fs.ErrPermission) {
				denied = fmt.Errorf("list the sockets of process %s: %w", pid, unreadable(err))
			}
			if err == nil && !slices.Contains(holders[inode], pid) {
				holders[inode] = append(holders[inode], pid)
			}
		}
		_ = one.Close() // it was only read
	}
	return holders, denied
}

// sockets lists the sockets that the process has open.
func (p *process) sockets() iter.Seq2[uint64, error] {
	return func(yield func(uint64, error) bool) {
		dir, err := input.OpenDir(p.path("fd"))
		if err != nil {
			yield(0, err)
			return
		}
		defer dir.Close()
		for name, err := range input.Names(dir) {
			var target string
			if err == nil {
				target, err = os.Readlink(filepath.Join(dir.Name(), name))
			}
			number, isSocket := strings.CutPrefix(target, "socket:[")
			if err == nil && !isSocket {
				continue
			}
			inode, noNumber := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 64)
			if err == nil {
				err = noNumber
			}
			if !yield(inode, err) {
				return
			}
		}
	}
}

// rootListens reports whether one of the sockets is bound to the file that f refers to,
// and is open in a process of the host's root.
func (p *processes) rootListens(ctx context.Context, h host, held []bound, f *os.File) bool {
	return slices.ContainsFunc(held, func(b bound) bool {
		return b.isTo(h, f) && slices.ContainsFunc(b.holders, func(pid string) bool { return p.holds(ctx, pid, b.socket) == nil })
	})
}

func (p *processes) holds(ctx context.Context, pid string, inode uint64) error {
	one, err := p.open(ctx, pid)
	if err != nil {
		return err
	}
	defer one.Close()
	image, err := one.image()
	if err != nil {
		return err
	}
	defer image.Close()
	for is, err := range one.sockets() {
		if err == nil && is == inode {
			return one.prove(ctx, image)
		}
	}
	return errStranger
}

// vetted opens a reference to a socket, if only root can have made it and can exchange
// it. A pod that is root in its container can put a socket into a volume.
func (h host) vetted(path string) (*os.File, error) {
	f, err := durable.OpenVetted(h.root, path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().Type() != fs.ModeSocket {
		err = fmt.Errorf("%q is not a socket", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// answers returns an error unless root listens at the path on the host. The name of a
// socket stays when its process has ended, and another mount namespace may have one of
// the same name.
func (h host) answers(ctx context.Context, path string) error {
	f, err := h.vetted(path)
	if err != nil {
		return err
	}
	defer f.Close()
	conn, err := connect(ctx, f)
	if err != nil {
		return err
	}
	return conn.Close()
}

// connect connects to the socket that f refers to, at which root, or this process's own
// user, must listen. The listener is the process that called listen(2), even if another
// one has the socket by now.
func connect(ctx context.Context, f *os.File) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", again(f))
	if err != nil {
		return nil, err
	}
	raw, err := conn.(*net.UnixConn).SyscallConn()
	var peer *unix.Ucred
	var peerErr error
	if err == nil {
		err = raw.Control(func(fd uintptr) { peer, peerErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	}
	if err = errors.Join(err, peerErr); err == nil && peer.Uid != 0 && int(peer.Uid) != os.Geteuid() {
		err = fmt.Errorf("%w: uid %d listens", errUnproven(), peer.Uid)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// errUnproven returns ErrUnproven with the remedy.
func errUnproven() error {
	return remedy.Add(ErrUnproven, "it must listen as root, on the host, outside all pods; from a container, verifying that in the host's /proc takes CAP_SYS_PTRACE")
}

// dial connects to the runtime if it is the host's.
func (e Endpoint) dial(ctx context.Context) (net.Conn, error) {
	h, err := openHost(e.proc())
	if err != nil {
		return nil, err
	}
	defer h.Close()
	path := strings.TrimPrefix(e.Path, scheme)
	f, err := h.openSocket(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := h.vets(path, f); err != nil {
		return nil, err
	}
	conn, err := connect(ctx, f)
	if err == nil {
		if err = e.prove(ctx, h, f); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	var errno syscall.Errno
	switch {
	case err == nil:
		return conn, nil
	case errors.Is(err, ErrUnproven):
		return nil, err
	case errors.Is(err, fs.ErrPermission) && errors.As(err, &errno):
		return nil, remedy.Add(fmt.Errorf("connect: %w", errno), "needs root, and under SELinux a type that may connect to the runtime, such as spc_t")
	case errors.As(err, &errno):
		return nil, fmt.Errorf("connect: %w", errno)
	}
	return nil, ended(ctx, err)
}

// vets returns an error unless f refers to the object at the path, and only root can
// replace it.
func (h host) vets(path string, f *os.File) error {
	vetted, err := h.vetted(path)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnproven(), err)
	}
	defer vetted.Close()
	if same, err := sameFile(vetted, f); err != nil || !same {
		return errors.Join(fmt.Errorf("%w: it was exchanged meanwhile", errUnproven()), err)
	}
	return nil
}

// prove returns an error unless a process of the host's root has the socket that f refers
// to. A runtime may be known by a path other than the one at which it listens.
func (e Endpoint) prove(ctx context.Context, h host, f *os.File) error {
	p, err := openProcesses(ctx, e.proc())
	if err != nil {
		return err
	}
	held, denied, err := p.held(ctx)
	if err != nil || p.rootListens(ctx, h, held, f) {
		return err
	}
	return errors.Join(errUnproven(), denied)
}

// isAt reports whether the path leads to the object that f refers to.
func (h host) isAt(path string, f *os.File) bool {
	at, err := h.open(path)
	if err != nil {
		return false
	}
	defer at.Close()
	same, err := sameFile(at, f)
	return err == nil && same
}
