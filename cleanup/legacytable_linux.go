// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel makes a legacy table at the first question about it. So only
// those are asked for that /proc says are there, and first for the names of
// their chains alone: for most nodes that is the end of it, with no tool.

// legacyFamily is IPv4's or IPv6's side of legacy iptables.
type legacyFamily struct {
	name   string // "ip", "ip6"
	tool   string // the name that its tools start with
	domain int
	level  int // of its socket options
	proc   string

	// Offsets in struct ipt_entry or ip6t_entry. Up to there it is the same
	// for programs of 32 bits.
	targetOffset, nextOffset int
}

func legacyFamilies() []legacyFamily {
	return []legacyFamily{
		{"ip", "iptables", unix.AF_INET, unix.SOL_IP, "/proc/thread-self/net/ip_tables_names", 88, 90},
		{"ip6", "ip6tables", unix.AF_INET6, unix.SOL_IPV6, "/proc/thread-self/net/ip6_tables_names", 140, 142},
	}
}

// tables returns the names of the tables that exist in the thread's network
// namespace.
func (f legacyFamily) tables() ([]string, error) {
	text, err := os.ReadFile(f.proc)
	if errors.Is(err, unix.ENOENT) {
		// The kernel has none, or has no IPv6; or this is a /proc that does not
		// show the thread, and says nothing about it.
		_, err = os.Stat(filepath.Dir(f.proc))
	}
	return strings.Fields(string(text)), err
}

// The socket options of linux/netfilter_ipv4/ip_tables.h, the same for IPv6.
const (
	iptGetInfo    = 64
	iptGetEntries = 65

	sizeofIptInfo  = 84
	iptNameSize    = 32
	iptInfoSize    = 80 // offset of the size of all entries
	iptEntriesSize = 32 // offset of the size of all entries
)

// sizeofIptGetEntries is the header before the entries. It is aligned for
// numbers of 64 bits, as C's compilers do.
func sizeofIptGetEntries() int {
	if runtime.GOARCH == "386" {
		return 36
	}
	return 40
}

// legacyTries bounds how often a table is read that changes meanwhile.
const legacyTries = 32

// chains returns the names of the chains of a table that exists, but for the
// built-in ones.
func (f legacyFamily) chains(table string) ([]string, error) {
	fd, err := unix.Socket(f.domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	for try := 1; ; try++ {
		entries, err := f.entries(fd, table)
		if errors.Is(err, unix.EAGAIN) && try < legacyTries {
			continue
		}
		if err != nil {
			return nil, err
		}
		return f.parseChains(entries)
	}
}

func (f legacyFamily) entries(fd int, table string) ([]byte, error) {
	info := make([]byte, sizeofIptInfo)
	copy(info[:iptNameSize-1], table)
	if err := getsockopt(fd, f.level, iptGetInfo, info); err != nil {
		return nil, err
	}
	size := binary.NativeEndian.Uint32(info[iptInfoSize:])
	header := sizeofIptGetEntries()
	b := make([]byte, header+int(size))
	copy(b[:iptNameSize-1], table)
	binary.NativeEndian.PutUint32(b[iptEntriesSize:], size)
	if err := getsockopt(fd, f.level, iptGetEntries, b); err != nil {
		return nil, err
	}
	return b[header:], nil
}

func getsockopt(fd, level, option int, b []byte) error {
	size := uint32(len(b))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(option),
		uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&size)), 0)
	switch errno {
	case 0:
		return nil
	case unix.EPERM:
		return hinted{os.NewSyscallError("getsockopt", errno), "needs CAP_NET_ADMIN"}
	}
	return os.NewSyscallError("getsockopt", errno)
}

// parseChains reads the entries of a table. A chain begins with an entry whose
// target is ERROR and holds the chain's name; so does the table's end, by the
// name ERROR.
func (f legacyFamily) parseChains(b []byte) ([]string, error) {
	const (
		sizeofTarget = 32 // struct xt_entry_target
		targetName   = 2
	)
	var names []string
	for len(b) > 0 {
		if len(b) < f.nextOffset+2 {
			return nil, fmt.Errorf("iptables entry of %d bytes is too short", len(b))
		}
		target := int(binary.NativeEndian.Uint16(b[f.targetOffset:]))
		next := int(binary.NativeEndian.Uint16(b[f.nextOffset:]))
		if target+sizeofTarget > next || next > len(b) || next == 0 {
			return nil, fmt.Errorf("iptables entry of %d bytes in %d, with its target at %d", next, len(b), target)
		}
		name := unix.ByteSliceToString(b[target+targetName : target+sizeofTarget-1])
		if name == "ERROR" {
			chain := unix.ByteSliceToString(b[target+sizeofTarget : next])
			if chain != "ERROR" {
				names = append(names, chain)
			}
		}
		b = b[next:]
	}
	return names, nil
}
