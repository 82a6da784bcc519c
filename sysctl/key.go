// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// Key names a kernel value as sysctl.d(5) does: elements separated by dots, in
// which a slash stands for a dot in a name ("net.ipv4.conf.eth0/100.rp_filter"),
// or separated by slashes, in which a dot is a dot
// ("net/ipv4/conf/eth0.100/rp_filter"). The first separator decides. The
// elements may hold the wildcards *, ? and [] of glob(7).
//
// Every function here takes either spelling. [ParseKey] returns the dotted
// one, by which keys can be compared.
type Key string

var errKey = errors.New("not a sysctl key")

// ParseKey checks a key and returns its dotted spelling. A key that is empty
// or absolute, that has an empty element, "." or ".." as an element, white
// space, NUL, or a leading "-" (which is a [Setting]'s), is an error: no key
// names anything outside /proc/sys.
func ParseKey(s string) (Key, error) {
	path, err := Key(s).path()
	if err != nil {
		return "", err
	}
	return keyOf(path), nil
}

// keyOf is the dotted spelling of a path below /proc/sys.
func keyOf(path string) Key { return Key(swap(path)) }

// path is where k is below /proc/sys.
func (k Key) path() (string, error) {
	path := string(k)
	if i := strings.IndexAny(path, "./"); i >= 0 && path[i] == '.' {
		path = swap(path)
	}
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

// isGlob is what systemd takes for a pattern; braces alone do not make one.
func isGlob(path string) bool { return strings.ContainsAny(path, "*?[") }
