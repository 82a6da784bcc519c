// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/input"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// procSys is the directory that shows the kernel's values. Each call opens it
// anew: what it shows depends on the thread. [os.Root] keeps a name below it.
type procSys string

func (p procSys) open(name string, flag int) (*os.File, error) {
	root, err := os.OpenRoot(string(p))
	if errors.Is(err, fs.ErrNotExist) { // that is about no key
		return nil, remedy.Add(unix.ENODEV, "there is no "+string(p)+": mount a proc file system on /proc")
	}
	if err != nil {
		return nil, fmt.Errorf("kernel values: %w", err)
	}
	defer root.Close()
	return root.OpenFile(name, flag, 0)
}

func (p procSys) ReadFile(name string) ([]byte, error) {
	f, err := p.open(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return input.Read(context.Background(), f, input.MaxSysctl)
}

// WriteFile writes once, from the start: with kernel.sysctl_writes_strict a
// second write would be ignored.
func (p procSys) WriteFile(name string, value []byte) error {
	f, err := p.open(name, os.O_WRONLY)
	if err != nil {
		return err
	}
	_, err = f.Write(value)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

func (p procSys) ReadDir(name string) ([]string, error) {
	f, err := p.open(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

func (p procSys) Writable(name string) error {
	f, err := p.open(name, os.O_WRONLY)
	if errors.Is(err, fs.ErrPermission) && p.fixed(name) {
		return errFixed
	}
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if adminWrites(name) && len(remedy.Missing(remedy.SysAdmin)) > 0 {
		return unix.EPERM
	}
	return nil
}

// errFixed is not about permissions, of which others may have more.
var errFixed = errors.New("the kernel lets nobody write it")

// fixed reports whether the file has no mode to write it, which root needs too
// (test_perm in fs/proc/proc_sysctl.c).
func (p procSys) fixed(name string) bool {
	f, err := p.open(name, os.O_RDONLY)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	return err == nil && info.Mode()&0o222 == 0
}

// adminWrites reports whether only a write, and not the open before it, takes
// CAP_SYS_ADMIN: bpf_unpriv_handler in kernel/bpf/syscall.c, and
// proc_dointvec_minmax_bpf_enable in net/core/sysctl_net_core.c.
func adminWrites(name string) bool {
	return name == "kernel/unprivileged_bpf_disabled" || strings.HasPrefix(name, "net/core/bpf_jit_")
}

// The flags of a route that the kernel itself learnt from a router, and will
// drop when forwarding is turned on (rt6_purge_dflt_routers in
// net/ipv6/route.c): include/uapi/linux/ipv6_route.h.
const (
	rtfDefault  = 0x00010000
	rtfAddrconf = 0x00040000
)

// Routers reads the calling thread's table. A route that a daemon such as
// systemd-networkd set after processing advertisements itself does not have the
// flags, and survives when forwarding is turned on.
func (p procSys) Routers() ([]string, error) {
	f, err := os.Open("/proc/thread-self/net/ipv6_route")
	if os.IsNotExist(err) { // no IPv6
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list IPv6 routes: %w", err)
	}
	defer f.Close()
	var links []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		link, ok, err := learntRouter(lines.Text())
		if err != nil {
			return nil, err
		}
		if ok && !slices.Contains(links, link) {
			links = append(links, link)
		}
	}
	return links, lines.Err()
}

// learntRouter reads a line: destination, length, source, length, next hop,
// metric, reference count, use, flags, link.
func learntRouter(line string) (link string, ok bool, err error) {
	fields := strings.Fields(line)
	if len(fields) != 10 {
		return "", false, fmt.Errorf("list IPv6 routes: unexpected line %q", line)
	}
	flags, err := strconv.ParseUint(fields[8], 16, 32)
	if err != nil {
		return "", false, fmt.Errorf("list IPv6 routes: flags: %w", err)
	}
	const learnt = rtfDefault | rtfAddrconf
	return fields[9], fields[1] == "00" && flags&learnt == learnt, nil
}
