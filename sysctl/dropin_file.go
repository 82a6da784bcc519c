// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// fileKind returns the kind of drop-ins: files, of which the wanted one is applied by
// systemd, which changes values along.
func (d DropIn) fileKind(file ledger.Want, r *reload, beyond []target) *ledger.Kind {
	k := ledger.File()
	k.Name, k.Find = "sysctl.d", d.find
	write, describe, permission, owns := k.Write, k.Describe, k.Permission, k.Owns
	isApplied := func(to ledger.State) bool { return r != nil && to.SHA256 == file.To.SHA256 }
	k.Met = func(now ledger.State, w ledger.Want) bool { return now.Equal(w.To) }
	k.Same = func(a, b ledger.State) bool { return whenApplied(a).Equal(whenApplied(b)) }
	k.Write = func(ctx context.Context, path string, to ledger.State) error {
		if !isApplied(to) {
			return write(ctx, path, to)
		}
		to.Mode = modeUntilApplied
		if err := errors.Join(write(ctx, path, to), ctx.Err()); err != nil {
			return err
		}
		if err := r.now(ctx); err != nil {
			return err
		}
		return write(ctx, path, file.To) // over the one that was just written
	}
	k.Along = func(ctx context.Context, _ string, to ledger.State) ([]ledger.Side, error) {
		if !isApplied(to) {
			return nil, nil
		}
		return d.Kernel.alongReload(ctx, beyond)
	}
	k.Describe = func(path string, from, to ledger.State) string {
		line := describe(path, from, to)
		if isApplied(to) {
			line += ", and " + r.how
		}
		return line
	}
	k.Permission = func(ctx context.Context, path string) error {
		return cmp.Or(d.refused(path), permission(ctx, path))
	}
	k.Owns = func(path string) error {
		if filepath.Ext(path) != ".conf" {
			return errors.New("a drop-in ends with .conf")
		}
		return owns(path)
	}
	return k
}

// modeUntilApplied is the mode of a file that systemd has not applied yet. So a run after
// one that was killed, or whose reload failed, knows that a reload is still to be done.
const modeUntilApplied = 0o640

func whenApplied(s ledger.State) ledger.State {
	if s.Mode == modeUntilApplied {
		s.Mode = 0o644
	}
	return s
}

// refused returns an error if no process can make the file, or its directory. Missing
// permissions of this process alone do not count.
func (d DropIn) refused(path string) error {
	dir := filepath.Dir(path)
	nearest, err := durable.Writable(dir)
	switch {
	case d.ExistingDir && nearest != dir:
		return fmt.Errorf("directory %s does not exist, and must not be made", dir)
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EPERM):
		return fmt.Errorf("%w: %s: %w", errReadOnlyDirectory, nearest, remedy.File(err))
	}
	return nil
}
