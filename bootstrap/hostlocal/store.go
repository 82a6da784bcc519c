// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostlocal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// defaultDataDir is host-local's, used if its configuration has no dataDir.
const defaultDataDir = "/var/lib/cni/networks"

// defaultMinAge is more than twice as long as the kubelet waits for a sandbox.
const defaultMinAge = 10 * time.Minute

// Store is the state in which host-local holds no address of the network for a
// sandbox that the runtime does not know. It is a bootstrap.Action.
type Store struct {
	// Network is the name of the network in its CNI configuration, and of its
	// directory in DataDir.
	Network string

	// DataDir is host-local's dataDir, an absolute path. If empty, it is
	// /var/lib/cni/networks.
	DataDir string

	// Sandboxes returns the IDs of all sandboxes that the runtime knows, such as
	// cri.Endpoint.SandboxIDs. It is not called if there is nothing to release.
	Sandboxes func(context.Context) ([]string, error)

	// Enter calls its last argument in the host's namespaces of the given names, such as
	// hostns.Host.Do, since DataDir is a path of the host. Sandboxes is called outside
	// of it. If nil, the process's own namespaces are used.
	Enter func(ctx context.Context, namespaces []string, f func(context.Context) error) error

	minAge time.Duration // for tests; zero: defaultMinAge, negative: none
}

// Check lists what Apply would release or move aside. It takes no lock.
func (s Store) Check(ctx context.Context) ([]string, error) {
	leaks, err := s.leaks(ctx)
	if err != nil {
		return nil, err
	}
	var changes []string
	for _, r := range leaks {
		changes = append(changes, r.change())
	}
	return changes, nil
}

// Apply releases the addresses and moves aside the files that name no sandbox.
func (s Store) Apply(ctx context.Context) error {
	leaks, err := s.leaks(ctx)
	if err != nil || len(leaks) == 0 {
		return err
	}
	return s.on(ctx, func(ctx context.Context) error {
		dir, err := s.open()
		if err != nil || dir == nil {
			return err
		}
		defer dir.Close()
		unlock, err := lock(ctx, dir)
		if err != nil {
			return fmt.Errorf("release addresses: %w", err)
		}
		defer unlock()
		var errs []error
		for _, r := range leaks {
			if err := r.release(dir); err != nil {
				errs = append(errs, fmt.Errorf("release the address %s: %w", r.name, remedy.File(err)))
			}
		}
		return errors.Join(errs...)
	})
}

func (s Store) on(ctx context.Context, f func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("host-local's store of %q: %w", s.Network, err)
	}
	if s.Enter == nil {
		return f(ctx)
	}
	return s.Enter(ctx, []string{"mnt"}, f)
}

// open opens the network's directory; nil if there is none.
func (s Store) open() (*durable.Dir, error) {
	base := cmp.Or(s.DataDir, defaultDataDir)
	switch {
	case s.Sandboxes == nil:
		return nil, errors.New("host-local's store: no function given that lists the sandboxes")
	case !filepath.IsLocal(s.Network) || s.Network != filepath.Base(s.Network) || s.Network == ".":
		return nil, fmt.Errorf("host-local's store: %q is not a network name", s.Network)
	case !filepath.IsAbs(base):
		return nil, fmt.Errorf("host-local's store: %q is not an absolute path", base)
	}
	dir, err := durable.OpenDir(filepath.Join(base, s.Network))
	switch {
	case isGone(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("host-local's store: %w", remedy.File(err))
	}
	return dir, nil
}

// leaks lists the reservations to release.
func (s Store) leaks(ctx context.Context) (leaks []reservation, err error) {
	var all []reservation
	err = s.on(ctx, func(ctx context.Context) error {
		dir, err := s.open()
		if err != nil || dir == nil {
			return err
		}
		defer dir.Close()
		all, err = s.read(ctx, dir)
		return err
	})
	if err != nil {
		return nil, err
	}
	known, err := s.known(ctx, all)
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		if r.damage != "" || !known[r.sandbox] {
			leaks = append(leaks, r)
		}
	}
	return leaks, nil
}

// known asks the runtime, if any of the reservations depends on it.
func (s Store) known(ctx context.Context, all []reservation) (map[string]bool, error) {
	if !slices.ContainsFunc(all, func(r reservation) bool { return r.damage == "" }) {
		return nil, nil
	}
	ids, err := s.Sandboxes(ctx)
	if err != nil {
		return nil, fmt.Errorf("determine which addresses are in use: %w", err)
	}
	known := make(map[string]bool, len(ids))
	for _, id := range ids {
		known[id] = true
	}
	return known, nil
}
