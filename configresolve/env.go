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

// Env is the source that reads the environment variables whose names start with prefix,
// which must not be empty, from environ, which is usually os.Environ(): the package reads
// no environment itself. The rest of the name is the key, in lower case and with '-' for
// '_': with the prefix CILIUM_, the variable CILIUM_ENABLE_IPV4 sets enable-ipv4. If no
// variable has the prefix, there are no keys, which is not an error. If two variables give
// the same key, that is an error.
func Env(prefix string, environ []string) Source {
	ref := Ref{Kind: kindEnv, Name: prefix}
	return Source{Ref: ref, trusted: true, Read: func(context.Context) ([]Layer, error) {
		values, err := variables(prefix, environ)
		return []Layer{{Ref: ref, Values: values}}, err
	}}
}

func variables(prefix string, environ []string) (map[string]string, error) {
	if prefix == "" {
		return nil, errors.New("empty prefix: the whole environment is not a configuration")
	}
	values, names := map[string]string{}, map[string]string{}
	for _, variable := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(variable, "=")
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		key := strings.ReplaceAll(strings.ToLower(rest), "_", "-")
		if other, taken := names[key]; taken {
			return nil, fmt.Errorf("variables %s and %s both give the key %s", quote(other), quote(name), quote(key))
		}
		names[key], values[key] = name, value
	}
	return values, nil
}
