// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kmod

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Modules is the state of a node whose kernel has all modules of a list. It is a
// bootstrap.Adviser; the zero value does nothing.
type Modules struct {
	// List holds names of modules, such as "xt_socket"; - and _ are equivalent. Aliases
	// are not supported.
	List []string

	// Load makes Apply load available modules that are not loaded. If false, these are
	// advice.
	Load bool

	root string // of the node, in tests
}

// OnHost lists the mount namespace, for the host's modules.
func (Modules) OnHost() (namespaces []string, places map[string]string) { return []string{"mnt"}, nil }

// Check names the modules that Apply would load. An error names the modules that the
// kernel does not have or cannot load, and the remedy; the errors of several modules are
// joined.
func (m Modules) Check(ctx context.Context) (changes []string, err error) {
	err = m.each(ctx, func(_ *kernel, name string) error {
		if m.Load {
			changes = append(changes, "load kernel module "+name)
		}
		return nil
	})
	return changes, err
}

// Apply loads the modules that Check names, one after the other. If one cannot be loaded,
// the others still are; the errors are joined.
func (m Modules) Apply(ctx context.Context) error {
	return m.each(ctx, func(k *kernel, name string) error {
		if !m.Load {
			return nil
		}
		return k.load(ctx, name)
	})
}

// Advise names, if Load is false, the available modules that are not loaded.
func (m Modules) Advise(ctx context.Context) (advice []string, err error) {
	if m.Load {
		return nil, nil
	}
	err = m.each(ctx, func(_ *kernel, name string) error {
		advice = append(advice, fmt.Sprintf("kernel module %s is not loaded: the kernel loads it on demand, modprobe %s loads it now, and a file in /etc/modules-load.d at each boot", name, name))
		return nil
	})
	return advice, err
}

// each calls do for each available module that is not loaded.
func (m Modules) each(ctx context.Context, do func(k *kernel, name string) error) error {
	if len(m.List) == 0 {
		return nil
	}
	k, err := running(m.root)
	if err != nil {
		return err
	}
	var errs []error
	seen := map[string]bool{}
	for _, name := range m.List {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		name, err := normal(name)
		if seen[name] {
			continue
		}
		present := false
		if err == nil {
			seen[name] = true
			present, err = k.has(ctx, name)
		}
		if err == nil && !present {
			if err = k.mayLoad(ctx, name, m.Load); err == nil {
				err = do(k, name)
			}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*$`)

// normal returns a module's name as the kernel spells it.
func normal(name string) (string, error) {
	if !nameForm.MatchString(name) {
		return "", fmt.Errorf("%q is not a kernel module name", name)
	}
	return strings.ReplaceAll(name, "-", "_"), nil
}
