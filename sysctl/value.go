// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"strconv"
	"strings"
)

// sameValue compares two values as the kernel prints and takes them: fields
// between blanks or tabs, numbers also in hexadecimal and octal.
func sameValue(a, b string) bool {
	as, bs := strings.Fields(a), strings.Fields(b)
	if len(as) != len(bs) {
		return false
	}
	for i := range as {
		if as[i] != bs[i] && !sameNumber(as[i], bs[i]) {
			return false
		}
	}
	return true
}

func sameNumber(a, b string) bool {
	x, errA := number(a)
	y, errB := number(b)
	return errA == nil && errB == nil && x == y
}

// number reads an integer as the kernel's strtoul with base 0 does: decimal,
// 0x1f or 017. Go's base 0 would also take 0b1, 0o7 and 1_000.
func number(s string) (int64, error) {
	digits := strings.ToLower(strings.TrimLeft(s, "+-"))
	if strings.Contains(digits, "_") || strings.HasPrefix(digits, "0b") || strings.HasPrefix(digits, "0o") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(s, 0, 64)
}
