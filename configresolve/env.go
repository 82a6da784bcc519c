// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Env is the set of environment variables whose names start with Prefix. The rest
// of the name is the key, in lower case and with '-' for '_': with the prefix
// CILIUM_, the variable CILIUM_ENABLE_IPV4 sets enable-ipv4.
type Env struct {
	Prefix  string   // as written, not empty
	Environ []string // NAME=VALUE, as os.Environ returns; the package reads no environment itself
}

// Ref identifies the source as env:PREFIX.
func (e Env) Ref() Ref { return Ref{Kind: kindEnv, Name: e.Prefix} }

// Read picks the variables. If no variable has the prefix, there are no keys, which
// is not an error. If two variables give the same key, that is an error.
func (e Env) Read(context.Context) ([]Layer, error) {
	if e.Prefix == "" {
		return nil, errors.New("empty prefix: the whole environment is not a configuration")
	}
	values, names := map[string]string{}, map[string]string{}
	for _, variable := range slices.Sorted(slices.Values(e.Environ)) {
		name, value, _ := strings.Cut(variable, "=")
		rest, ok := strings.CutPrefix(name, e.Prefix)
		if !ok {
			continue
		}
		key := strings.ReplaceAll(strings.ToLower(rest), "_", "-")
		if other, taken := names[key]; taken {
			return nil, fmt.Errorf("variables %s and %s both give the key %s", quote(other), quote(name), quote(key))
		}
		names[key], values[key] = name, value
	}
	return []Layer{{Ref: e.Ref(), Values: values}}, nil
}
