// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrUninstalled says that the installation has been taken back, or was never
// made: there is nothing to guard.
var ErrUninstalled = errors.New("no longer installed")

// ErrContested says that somebody else, such as the guard of another agent,
// undoes each repair.
var ErrContested = errors.New("somebody else undoes each repair")

// Guard keeps an installation as it is: where one of its files is changed,
// moved or removed, or a folder is replaced, it applies Install again, within a
// second if that itself takes no longer than half of one.
//
// It installs nothing anew: what has been applied is guarded. With a StateDir
// the record decides. An uninstall ends the guard ([ErrUninstalled]), as does a
// later installation ([ErrNotOwner]), by another owner or with other content.
type Guard struct {
	// Install is what has been applied. Its Warn is not called.
	Install Install

	// Lock is taken for each repair, and only for it; what the record says is
	// read after that. An uninstall has to hold the same lock, or the guard may
	// repair what is just being removed. Nil: no lock.
	Lock func(ctx context.Context) (unlock func() error, err error)

	// Patience is how long the guard goes on, with a repair every 0.4 seconds,
	// while somebody else undoes each of them; zero: 5 minutes. Then it ends with
	// [ErrContested].
	Patience time.Duration

	// Repaired is told what each repair changed; nil: nobody is.
	Repaired func(changes []string)

	// Trouble is told of what the guard goes on in spite of; nil: nobody is. That
	// is a repair that does not succeed, which is tried again; once in each fight
	// [ErrContested]; and an error of inotify, without which the folders are
	// looked at every 0.4 seconds.
	Trouble func(err error)
}

// Run guards until ctx ends or the guard does, and always returns an error:
// that of ctx, [ErrUninstalled], [ErrNotOwner], [ErrContested], or that of an
// Install whose fields are wrong.
//
// It needs Linux, and an inotify instance with a watch for each folder on the
// way to those guarded; elsewhere it is [errors.ErrUnsupported]. All paths are
// resolved on the calling thread, so it may run inside hostns.Do for as long as
// it likes. While nothing happens it blocks, and uses no processor time.
//
// What inotify does not see: a write through another hard link of a file, or
// through a memory map that is still open; a mount over a folder.
func (g Guard) Run(ctx context.Context) error {
	return fmt.Errorf("guard CNI: %w", g.run(ctx))
}
