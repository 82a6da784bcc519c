// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"path/filepath"
	"strconv"
	"strings"
)

// aside is the name that a configuration got when it was set aside: the one that
// it had, a suffix, and a number where there was such a name already.
type aside struct {
	dir    string
	base   string
	name   string // that it had
	number int    // -1: none
	suffix string
}

func (a aside) path() string { return filepath.Join(a.dir, a.base) }

func (a aside) original() string { return filepath.Join(a.dir, a.name) }

// parseAside reads a name that is another name and the suffix, perhaps with a dot
// and a number.
func parseAside(base, suffix string) (a aside, ok bool) {
	a = aside{base: base, number: -1, suffix: suffix}
	if a.name, ok = strings.CutSuffix(base, suffix); ok {
		return a, a.name != ""
	}
	rest, number, _ := cutLast(base, ".")
	n, err := strconv.ParseUint(number, 10, 31)
	if err != nil || strconv.FormatUint(n, 10) != number {
		return a, false
	}
	a.number = int(n)
	a.name, ok = strings.CutSuffix(rest, suffix)
	return a, ok && a.name != ""
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
