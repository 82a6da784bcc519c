// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package netfilter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The options of a socket that show a table (linux/netfilter_ipv4/ip_tables.h, and the
// same numbers for IPv6). struct ipt_getinfo is the name of the table and 13 numbers, of
// which the last is the size of the entries; struct ipt_get_entries is the name, that
// size, and, aligned as a 64-bit number is, the entries.
const (
	getInfo    = 64
	getEntries = 65

	tableName   = 32
	infoSize    = tableName + 4 + 5*4 + 5*4 + 2*4
	targetName  = 2       // in struct xt_entry_target: after its size
	targetSize  = 32      // up to the target's own data
	errorTarget = "ERROR" // starts a named chain; the name is in its data
	chainName   = 30

	maxTable = 256 << 20 // a few hundred bytes a rule
)

// LegacyChains returns the names of the user-defined chains in a table of legacy
// iptables; none if there is no such table.
func (f Family) LegacyChains(ctx context.Context, table string) ([]string, error) {
	tables, err := f.LegacyTables(ctx)
	if err != nil || !slices.Contains(tables, table) {
		return nil, err
	}
	fd, err := unix.Socket(f.socket, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0) // of any kind: a raw one takes CAP_NET_RAW
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	entries, err := legacyEntries(fd, f.level, table)
	if err != nil {
		return nil, fmt.Errorf("table %s of legacy iptables: %w", table, err)
	}
	return legacyChains(entries, f.target), nil
}

// legacyEntries reads a table, again if it grew meanwhile.
func legacyEntries(fd, level int, table string) ([]byte, error) {
	const tries = 10
	for range tries {
		info := make([]byte, infoSize)
		copy(info, table)
		if err := getOption(fd, level, getInfo, info); err != nil {
			return nil, err
		}
		size := binary.NativeEndian.Uint32(info[infoSize-4:])
		if size > maxTable {
			return nil, fmt.Errorf("it has %d bytes, more than %d", size, maxTable)
		}
		answer := make([]byte, entriesAt()+int(size))
		copy(answer, table)
		binary.NativeEndian.PutUint32(answer[tableName:], size)
		switch err := getOption(fd, level, getEntries, answer); {
		case err == nil:
			return answer[entriesAt():], nil
		case !errors.Is(err, unix.EAGAIN):
			return nil, err
		}
	}
	return nil, errors.New("it keeps changing")
}

// entriesAt is where the entries start.
func entriesAt() int {
	if runtime.GOARCH == "386" {
		return tableName + 4
	}
	return tableName + 8
}

func getOption(fd, level, name int, value []byte) error {
	size := uint32(len(value))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(&value[0])), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return os.NewSyscallError("getsockopt", errno)
	}
	return nil
}

// legacyChains returns the names in the entries of a table: a user-defined chain starts
// with an entry whose target is called ERROR and holds the chain's name. So does the end
// of the table, with the name ERROR.
func legacyChains(entries []byte, offset int) (names []string) {
	for len(entries) >= offset+4 {
		target := int(binary.NativeEndian.Uint16(entries[offset:]))
		next := int(binary.NativeEndian.Uint16(entries[offset+2:]))
		if next < offset+4 || next > len(entries) {
			break // not written by a kernel
		}
		if name, ok := errorName(entries[min(target, next):next]); ok {
			names = append(names, name)
		}
		entries = entries[next:]
	}
	return names
}

// errorName returns the name in the data of a target that is called ERROR.
func errorName(target []byte) (string, bool) {
	if len(target) < targetSize+chainName || unix.ByteSliceToString(target[targetName:targetSize-1]) != errorTarget {
		return "", false
	}
	return unix.ByteSliceToString(target[targetSize : targetSize+chainName]), true
}
