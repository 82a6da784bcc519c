// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"fmt"
)

// The two keys that [Config.Data] adds, for agents that want to know how they were
// configured. If a source gives one of them, it is reported and left out.
const (
	KeySources   = "config-sources"           // JSON array of Ref
	KeyOverrides = "config-sources-overrides" // JSON object with allowConfigKeys and denyConfigKeys
)

func reserved(key string) bool { return key == KeySources || key == KeyOverrides }

// quote makes any text safe and short enough for one line of a report.
func quote(text string) string {
	const most = 120
	if len(text) <= most {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q... (%d bytes)", text[:most], len(text))
}
