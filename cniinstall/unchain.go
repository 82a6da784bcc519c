// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/slipway-dev/slipway/internal/printable"
)

// Unchain takes a plugin out of other CNIs' configurations, where an earlier installer has put it
// that recorded nothing: one that the agent puts there no longer, such as under its former name.
// All else in the files stays, letter by letter. It is a bootstrap.Action, and leaves alone a list
// of the plugin alone, and what an agent of the node has put or published there.
type Unchain struct {
	ConfDir string // zero: /etc/cni/net.d
	Plugin  string // its type; must be given
}

// OnHost lists the mount namespace of the host, and the folder.
func (u Unchain) OnHost() (namespaces []string, places map[string]string) {
	return []string{"mnt"}, map[string]string{u.dir(): ""}
}

func (u Unchain) dir() string { return filepath.Clean(cmp.Or(u.ConfDir, defaultConfDir)) }

// Check lists the files that have the plugin.
func (u Unchain) Check(ctx context.Context) (changes []string, err error) {
	names, err := u.find(ctx)
	for _, name := range names {
		changes = append(changes, fmt.Sprintf("take plugin %s out of %s", u.Plugin, printable.Line(filepath.Join(u.dir(), name))))
	}
	return changes, err
}

// Apply takes it out.
func (u Unchain) Apply(ctx context.Context) error {
	names, err := u.find(ctx)
	for _, name := range names {
		err = errors.Join(err, again(func() error {
			return editList(ctx, filepath.Join(u.dir(), name), func(l listText) listText { return l.replace(u.Plugin, nil) })
		}))
	}
	return err
}

func (u Unchain) find(ctx context.Context) (names []string, err error) {
	if u.Plugin == "" {
		return nil, errors.New("no CNI plugin given to take out of configurations")
	}
	files, err := readRecorded(ctx)
	if err = cmp.Or(ctx.Err(), err, owned(u.dir())); err != nil {
		return nil, err
	}
	object := entryObject(u.Plugin, filepath.Dir(files.inDir(u.dir(), "x")))
	if len(files.entry(object).Claims) > 0 {
		return nil, nil
	}
	all, err := files.findEntries(ctx, object)
	for _, e := range all {
		names = append(names, e.name)
	}
	return names, err
}
