// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"strings"

	"github.com/slipway-dev/slipway/internal/printable"
)

// shownValue quotes the value of key for people, unless it looks like a secret. A
// boolean or an empty value reveals nothing.
func shownValue(key, value string, revealed bool) string {
	switch {
	case revealed:
		return quote(value)
	case strings.Contains(value, "PRIVATE KEY-----"):
		return printable.Mask
	case printable.Secret(key) && value != "" && value != "true" && value != "false":
		return printable.Mask
	}
	return quote(printable.NoCredentials(value))
}
