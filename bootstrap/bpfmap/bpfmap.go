// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bpfmap

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"
)

// Pinned is the state in which each map is pinned in a directory, as specified. It is a
// bootstrap.Action.
type Pinned struct {
	// Dir is an absolute path on a BPF file system, such as /sys/fs/bpf/agent. If only
	// its last element is missing, it is made with mode 0700.
	Dir string

	// Maps lists the maps to pin, each under its Name. They must be the agent's own,
	// since a map that does not match is replaced. Their Pinning is ignored.
	Maps []*ebpf.MapSpec
}

// Check lists the maps that Apply would make or replace, and why.
func (p Pinned) Check(ctx context.Context) (changes []string, err error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	p.Dir = filepath.Clean(p.Dir)
	return p.check(ctx)
}

// Apply creates and pins missing maps, and replaces those that do not match. If one
// fails, the others are still done; the errors are joined.
func (p Pinned) Apply(ctx context.Context) error {
	if err := p.Validate(); err != nil {
		return err
	}
	p.Dir = filepath.Clean(p.Dir)
	return p.apply(ctx)
}

// Kinds lists the kinds of entries that Apply makes in the context's journal.
func (Pinned) Kinds() []string { return Handler{}.Kinds() }

// Namespaces lists the host's mount namespace.
func (Pinned) Namespaces() []string { return Handler{}.Namespaces() }

// Places lists the directory.
func (p Pinned) Places() map[string]string { return map[string]string{p.Dir: ""} }

// Validate returns an error if the directory or the maps of p are invalid, whatever is on
// the node.
func (p Pinned) Validate() error {
	var errs []error
	if !filepath.IsAbs(p.Dir) || filepath.Clean(p.Dir) == "/" {
		errs = append(errs, fmt.Errorf("%q is not the absolute path of a directory", p.Dir))
	}
	if len(p.Maps) == 0 {
		errs = append(errs, errors.New("no maps given"))
	}
	names := map[string]bool{}
	for i, spec := range p.Maps {
		switch {
		case spec == nil:
			errs = append(errs, fmt.Errorf("map %d of %d is nil", i+1, len(p.Maps)))
		case spec.Name == "" || len(spec.Name) > maxName || strings.ContainsAny(spec.Name, "./\x00"): // bpffs reserves dots
			errs = append(errs, fmt.Errorf("map %q: want a name of at most %d bytes without dots and slashes", spec.Name, maxName))
		case names[spec.Name]:
			errs = append(errs, fmt.Errorf("map %q is given twice", spec.Name))
		default:
			names[spec.Name] = true
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("pin maps: %w", err)
	}
	return nil
}

// next starts the name under which a map waits to replace another: a bpffs has no
// reserved names.
const next = "slipway_next_"

const maxName = 255 - len(next)
