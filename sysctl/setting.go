// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"fmt"
	"strings"
)

// Setting is one line of a sysctl.d file: a key and its wanted value.
type Setting struct {
	// Key may be a glob. It then stands for the existing keys that match, except
	// those that another setting names explicitly. That there are none is no error,
	// since links come later; but a glob that no key could match counts as a missing
	// key: its fixed directory is not there, or nothing in it has the rest of the key,
	// as with net.ipv4.conf.lxc*.rp_filtr.
	Key Key
	// Value is written as it is. In comparisons, blanks and tabs between fields are
	// equal.
	Value string
	// IgnoreFailure is the "-" before a key: it is then no error if the key is
	// missing, cannot be read or cannot be set.
	IgnoreFailure bool
	// IfExists tolerates that the kernel does not have the key; any other failure is
	// still an error. A sysctl.d file has no notation for it, since systemd treats
	// every key that way.
	IfExists bool
	// Exclude is "-key" without "=": no glob sets this key. Value is not used.
	Exclude bool
}

// String returns the line of a sysctl.d file.
func (s Setting) String() string {
	switch {
	case s.Exclude:
		return "-" + string(s.Key)
	case s.IgnoreFailure:
		return fmt.Sprintf("-%s = %s", s.Key, s.Value)
	}
	return fmt.Sprintf("%s = %s", s.Key, s.Value)
}

// Change is a value that differs from the wanted one.
type Change struct {
	Key Key    // in its dotted spelling
	Old string // the kernel's
	New string
	Why string // what makes it necessary, if it is not a setting of the caller's

	ignore, guard bool
}

// String returns one line, such as "set net.ipv4.ip_forward = 1 (is 0)".
func (c Change) String() string {
	s := fmt.Sprintf("set %s = %s (is %s)", c.Key, oneLine(c.New), oneLine(c.Old))
	if c.Why != "" {
		s += ", " + c.Why
	}
	return s
}

func oneLine(value string) string {
	if fields := strings.Fields(value); len(fields) > 0 {
		return strings.Join(fields, " ")
	}
	return "empty"
}
