// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// The two keys that [Config.Data] adds, for agents that inspect their own
// configuration's origin. If a source sets one of them, it is reported and left
// out.
const (
	keySources   = "config-sources"           // JSON array of Ref
	keyOverrides = "config-sources-overrides" // JSON object with allowConfigKeys and denyConfigKeys
)

func reserved(key string) bool { return key == keySources || key == keyOverrides }

const maxKey = 253 // bytes

// checkKey applies the rule of a Kubernetes ConfigMap key, which also makes the key a
// file name. Its error continues a sentence about the key.
func checkKey(key string) error {
	switch {
	case key == "":
		return errors.New("is empty")
	case len(key) > maxKey:
		return fmt.Errorf("has %d characters, more than %d", len(key), maxKey)
	case key == ".":
		return errors.New(`is "."`)
	case strings.HasPrefix(key, ".."):
		return errors.New(`starts with ".."`)
	}
	if !isKey(key) {
		return errors.New("has characters other than letters, digits, '-', '_' and '.'")
	}
	return nil
}

var isKey = regexp.MustCompile(`^[-._a-zA-Z0-9]+$`).MatchString

// quote makes any text safe and short enough for one line of a report.
func quote(text string) string {
	const most = 120
	if len(text) <= most {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q... (%d bytes)", text[:most], len(text))
}
