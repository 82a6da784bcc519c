// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/slipway-dev/slipway/internal/code"
)

// Key names a kernel value as sysctl.d(5) does. Its elements are separated either
// by dots, and then a slash stands for a dot in a name
// ("net.ipv4.conf.eth0/100.rp_filter"), or by slashes, and then a dot is a dot
// ("net/ipv4/conf/eth0.100/rp_filter"). The first separator decides. Elements may
// contain the wildcards *, ? and [] of glob(7), without its character classes.
//
// Every function here accepts both spellings. [ParseKey] returns the dotted one;
// compare keys in that form.
type Key string

var errKey = code.New(code.SysctlKeyInvalid, "not a sysctl key")

// ParseKey checks a key and returns its dotted spelling. It returns an error if the
// key is empty or absolute, has an empty element or "." or ".." as an element,
// contains white space or NUL, or starts with "-" (which belongs to a [Setting]):
// so no key names anything outside /proc/sys.
func ParseKey(s string) (Key, error) {
	path, err := Key(s).path()
	if err != nil {
		return "", err
	}
	return keyOf(path), nil
}

// keyOf returns the dotted spelling of a path below /proc/sys.
func keyOf(path string) Key { return Key(swap(path)) }

// fileKey returns the dotted spelling of a key of a sysctl.d file. There systemd also
// takes separators at the beginning, at the end and several in a row
// (sysctl_normalize in src/basic/sysctl-util.c, path_simplify in path-util.c).
func fileKey(s string) (Key, error) {
	elements := slices.DeleteFunc(strings.Split(slashed(s), "/"), func(e string) bool { return e == "" || e == "." })
	path := strings.Join(elements, "/")
	why := unfit(path)
	if why == "" && strings.Contains(elements[0], ".") { // there is none, and no spelling for it
		why = "has a dot in the name of its first element"
	}
	if why != "" {
		return "", fmt.Errorf("%w: %q %s", errKey, s, why)
	}
	return keyOf(path), nil
}

// slashed returns s with slashes between its elements.
func slashed(s string) string {
	if i := strings.IndexAny(s, "./"); i >= 0 && s[i] == '.' {
		return swap(s)
	}
	return s
}

// path is k's path below /proc/sys.
func (k Key) path() (string, error) {
	path := slashed(string(k))
	if why := unfit(path); why != "" {
		return "", fmt.Errorf("%w: %q %s", errKey, string(k), why)
	}
	return path, nil
}

// swap exchanges dots and slashes, byte by byte: a link's name need not be
// UTF-8.
func swap(s string) string {
	b := []byte(s)
	for i, c := range b {
		switch c {
		case '.':
			b[i] = '/'
		case '/':
			b[i] = '.'
		}
	}
	return string(b)
}

func unfit(path string) string {
	switch {
	case path == "":
		return "is empty"
	case path[0] == '/' || path[0] == '-':
		return "starts with " + path[:1]
	case strings.ContainsRune(path, 0) || strings.ContainsFunc(path, unicode.IsSpace):
		return "holds white space or NUL"
	}
	for element := range strings.SplitSeq(path, "/") {
		switch element {
		case "":
			return "has an empty element"
		case ".", "..":
			return "has the element " + element
		}
	}
	return ""
}

// isGlob reports whether systemd takes path for a pattern. Braces alone do not make
// one.
func isGlob(path string) bool { return strings.ContainsAny(path, "*?[") }
