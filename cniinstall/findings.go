// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/slipway-dev/slipway/internal/code"
)

// Findings lists what keeps pods from the agent's network, whoever writes its
// configuration: also the agent itself, later, as ConfName, if Config is nil. These are the
// files that sort before ConfName, and plugins that the configuration misses that a
// runtime uses now. It makes an Install a checker of package bootstrap/preflight; for what
// Apply itself writes, Check and Advise say it. No plugin is run, and those that Apply
// would install do not count as missing. All of it is a warning: the other CNI may go, and
// plugins come.
func (i Install) Findings(ctx context.Context) (findings []error, err error) {
	if i, err = i.ResolveDirs(ctx); err == nil {
		i, err = i.withDefaults()
	}
	if err != nil {
		return nil, err
	}
	i.ConfName = i.named(nil)
	f := i.directory(recorded{})
	names, err := f.List(ctx, isConfName)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	for _, name := range names {
		if name >= f.own || i.Exclusive && i.Config != nil {
			break
		}
		if text := i.advise(ctx, f, name); text != "" {
			findings = append(findings, code.Wrap(code.CNIPreceded, fmt.Errorf("%s (move it away, or give the agent's a name that sorts first)", text)))
		}
	}
	raw, err := f.Read(ctx, names[0])
	if err != nil {
		return findings, err
	}
	n, err := parseWhole(ctx, f.Directory, names[0], raw)
	if only := i.Runtime.CRIO.DefaultNetwork; err != nil || only != "" && n.name != only { // said above, or passed over
		return findings, nil
	}
	for _, err := range i.willLack(ctx, n.types) {
		findings = append(findings, fmt.Errorf("pods get no network by %s, which sorts first: %w (install it, or remove the configuration if it is of a CNI that is gone)", filepath.Join(f.Dir, names[0]), err))
	}
	return findings, nil
}
