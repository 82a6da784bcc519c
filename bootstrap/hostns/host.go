// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/internal/flock"
)

// ErrLocked is matched by the error of a [Host.Lock] that waited too long.
var ErrLocked = flock.ErrHeld

var errNoFunction = errors.New("enter the host's namespaces: no function given to call there")

// Host is the node that a program changes, whether the program runs directly on it
// or in one of its containers. It is the Host of a bootstrap.Plan. The zero value is
// for a process that runs directly on the host.
type Host struct {
	// Proc is where the host's /proc is mounted, such as /hostproc, so that pid 1
	// there is the host's. "/proc" stands for the pid 1 that this process sees. If
	// Proc is empty, no namespace is entered, and what would stay in a container is
	// refused: see [Host.CheckPlaces].
	Proc string

	// Here, if Proc is empty, allows changes in the container that the process is in:
	// nothing is then refused.
	Here bool

	// LockFile is the path of the node's lock, on the host. If empty, it is
	// /run/slipway.lock, whose directory only root can write to; a plan of a process that is
	// not root takes a file beside its ledger instead. It is created with mode 0600, and never
	// removed.
	LockFile string

	// LockTimeout is how long Lock waits for another holder. Zero means 60 seconds; with
	// a negative value Lock does not wait.
	LockTimeout time.Duration
}

// Check returns an error unless Proc is empty or shows a host: a proc file system whose pid 1
// is not in the calling thread's mount namespace, as one sees it from a container. If pid 1 is
// in the thread's own, the error matches [ErrNotHost], except for "/proc", as a process that
// runs on the host may give it. On systems other than Linux it matches [errors.ErrUnsupported].
func (h Host) Check() error {
	if h.Proc == "" {
		return nil
	}
	err := checkProc(h.Proc)
	if errors.Is(err, ErrNotHost) && filepath.Clean(h.Proc) == "/proc" {
		return nil
	}
	return err
}

// Do runs f in the host's namespaces (see [Do]). If none is named, Proc is empty, or an
// enclosing Do has already moved the calling thread into all of them, it just calls f.
func (h Host) Do(ctx context.Context, namespaces []string, f func(context.Context) error) error {
	if f == nil {
		return errNoFunction
	}
	if err := check(namespaces); err != nil {
		return err
	}
	if len(namespaces) == 0 || h.Proc == "" || inside(ctx, h.init(), namespaces) {
		return f(ctx)
	}
	return Do(ctx, h.init(), namespaces, f)
}

// CheckPlaces returns an error that matches [ErrNotHost] if a change at one of the places
// would stay in the container that the process is in. A place is a file (see checkFile)
// or, where a type of file system is given, a mount (see checkMount). It returns nil if
// the host is entered, or if Here is set.
func (h Host) CheckPlaces(places map[string]string) error {
	if h.Proc != "" || h.Here {
		return nil
	}
	var errs []error
	for _, path := range slices.Sorted(maps.Keys(places)) {
		if fstype := places[path]; fstype != "" {
			errs = append(errs, checkMount(path, fstype))
		} else {
			errs = append(errs, checkFile(path))
		}
	}
	return errors.Join(errs...)
}

// Lock takes the node's lock: see [Host].LockFile. A plan holds it while it changes the
// node; a program that changes the node without a plan must hold it too. Owner identifies
// this holder to programs that wait for the lock. After a timeout, the error matches
// [ErrLocked] and names the holder.
//
// The kernel releases the lock when its holder dies. Unlock may be called in any
// namespace; a second call does nothing. Of two Locks in one process, the second waits
// too: do not call it inside a plan.
func (h Host) Lock(ctx context.Context, owner string) (unlock func() error, err error) {
	file := flock.File{Path: cmp.Or(h.LockFile, flock.DefaultPath), Timeout: h.LockTimeout, Owner: owner}
	err = h.Do(ctx, []string{"mnt"}, func(ctx context.Context) (err error) {
		unlock, err = file.Lock(ctx)
		return err
	})
	if errors.Is(err, fs.ErrPermission) && h.LockFile == "" {
		err = fmt.Errorf("%w (a program that is not root sets LockFile to another file, beside the ledger)", err)
	}
	return unlock, err
}

func (h Host) init() string { return filepath.Join(h.Proc, "1") }
