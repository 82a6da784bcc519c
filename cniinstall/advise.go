// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"fmt"
	"path/filepath"
)

// Advise lists why runtimes will not use the configuration, though nothing is
// left to change: a file that sorts before it, or one that does and is so
// wrong that containerd, which takes the first file, loads none at all. Each is
// a line for an administrator. In exclusive mode Apply sets such files aside,
// and there is nothing to say. It changes nothing.
func (i Install) Advise(ctx context.Context) ([]string, error) {
	i, err := i.withDefaults()
	if err != nil || i.Config == nil || i.Exclusive {
		return nil, err
	}
	f := i.folder()
	names, err := f.others(ctx)
	if err != nil {
		return nil, err
	}
	var advice []string
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if name < f.own {
			advice = append(advice, f.advise(ctx, name))
		}
	}
	return advice, nil
}

// advise says what a file does that sorts before ours.
func (f folder) advise(ctx context.Context, name string) string {
	path := filepath.Join(f.dir, name)
	raw, err := f.read(ctx, name)
	var network string
	if err == nil {
		network, err = loads(name, raw)
	}
	if err != nil {
		return fmt.Sprintf("%s is invalid and sorts before %s: containerd loads no network while it is there, CRI-O passes it over: %v",
			path, f.own, err)
	}
	return fmt.Sprintf("%s sorts before %s: runtimes use its network %q", path, f.own, network)
}
