// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// Unchain takes a plugin out of other CNIs' configurations, where an earlier installer has put it
// that recorded nothing: one that the agent puts there no longer, such as under its former name.
// All else in the files stays, letter by letter. It is a bootstrap.Action, and leaves alone a list
// of the plugin alone, and what an agent of the node has put or published there.
type Unchain struct {
	ConfDir string // zero: /etc/cni/net.d
	Plugin  string // its type; must be given
}

// OnHost lists the mount namespace of the host, and the directory.
func (u Unchain) OnHost() (namespaces []string, places map[string]string) {
	return []string{"mnt"}, map[string]string{u.dir(): ""}
}

func (u Unchain) dir() string { return filepath.Clean(cmp.Or(u.ConfDir, defaultConfDir)) }

// Check lists the files that have the plugin.
func (u Unchain) Check(ctx context.Context) (changes []string, err error) {
	object, now, err := u.find(ctx)
	if err != nil || now.IsZero() {
		return nil, err
	}
	return []string{(&inPlace{}).describe(object, now, ledger.State{})}, nil
}

// Apply takes it out.
func (u Unchain) Apply(ctx context.Context) error {
	object, now, err := u.find(ctx)
	if err != nil || now.IsZero() {
		return err
	}
	return (&inPlace{}).write(ctx, object, ledger.State{})
}

// find finds the plugin, unless an agent of the node has put it there.
func (u Unchain) find(ctx context.Context) (object string, now ledger.State, err error) {
	if u.Plugin == "" {
		return "", now, errors.New("no CNI plugin given to take out of configurations")
	}
	files, err := readRecorded(ctx)
	object = entryObject(u.Plugin, filepath.Dir(files.inDir(u.dir(), "x")))
	if err = cmp.Or(ctx.Err(), err, owned(u.dir())); err != nil || len(files.named(object).Claims) > 0 {
		return "", now, err
	}
	now, err = (&inPlace{}).read(ctx, object)
	return object, now, err
}
