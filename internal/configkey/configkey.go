// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package configkey tells what is a key of a configuration, for those who resolve
// and those who write one.
package configkey

import (
	"errors"
	"fmt"
	"strings"
)

const maxLength = 253

// Check applies the rule of a Kubernetes ConfigMap key, which also makes the key a
// file name. Its error continues a sentence about the key.
func Check(key string) error {
	switch {
	case key == "":
		return errors.New("is empty")
	case len(key) > maxLength:
		return fmt.Errorf("has %d characters, more than %d", len(key), maxLength)
	case key == ".":
		return errors.New(`is "."`)
	case strings.HasPrefix(key, ".."):
		return errors.New(`starts with ".."`)
	}
	if i := strings.IndexFunc(key, func(r rune) bool { return !allowed(r) }); i >= 0 {
		return errors.New("has characters other than letters, digits, '-', '_' and '.'")
	}
	return nil
}

func allowed(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.'
}
