// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// dropIns records files and the directories made for them.
var dropIns = journal.Files{Kind: "sysctl"}

// Handler undoes the recorded changes of every [DropIn] and [Settings]: it removes
// files or restores the previous ones, and puts back the values that are still as
// the step left them. A reboot undoes the values of a [Settings], but not those
// that a file sets again.
type Handler struct {
	// Kernel is the kernel whose values are put back. The zero value is the calling
	// thread's.
	Kernel Kernel

	// Dir is the directory that Find searches for drop-ins. If empty, it is
	// /etc/sysctl.d.
	Dir string
}

// Kinds lists the kinds of entries of sysctl.
func (Handler) Kinds() []string { return append(dropIns.Kinds(), kindValue) }

// Namespaces lists the host namespaces that hold the objects: none unless Kernel is
// the running one.
func (h Handler) Namespaces() []string { return h.Kernel.namespaces() }

// Owns returns an error if e is about neither a kernel value nor a file that could
// be a drop-in.
func (Handler) Owns(e journal.Entry) error {
	if e.Kind == kindFile && filepath.Ext(e.Object) != ".conf" {
		return errors.New("a drop-in ends with .conf")
	}
	if e.Kind != kindValue {
		return dropIns.Owns(e)
	}
	key, err := ParseKey(string(keyIn(e)))
	switch {
	case err != nil:
		return err
	case object(key) != e.Object:
		return fmt.Errorf("%w: %q is not one key in its dotted spelling", errKey, e.Object)
	case e.Before.Type != state("").Type:
		return fmt.Errorf("the previous state is not a value but %q", e.Before.Type)
	}
	return nil
}

// Look returns how to undo e.
func (h Handler) Look(ctx context.Context, p *journal.Pass, e journal.Entry) (journal.Undo, error) {
	if e.Kind != kindValue {
		return lookAtFile(ctx, p, e)
	}
	key := keyIn(e)
	at, err := key.path()
	if err != nil {
		return journal.Undo{}, err
	}
	switch now, err := h.Kernel.lookAgain(at, e.Before.Value); {
	case errors.Is(err, fs.ErrNotExist): // the link is gone
		return journal.Undo{}, nil
	case err != nil:
		return journal.Undo{}, fmt.Errorf("put back: %w", err)
	case sameValue(at, now, e.Before.Value):
		return h.Kernel.lookAlong(p.Journal(), e, at)
	case !left(e, now) && !e.MatchesAfter(state(now)): // it also accepts what other agents left there
		return journal.Undo{}, fmt.Errorf("%s is %s, %w (%s), so it is kept", e.Object, shown(key, now), journal.ErrChanged, shown(key, e.After.Value))
	case forGood(at, now), e.Before.Value == unset:
		return journal.Undo{
			Change: fmt.Sprintf("leave %s = %s until the next boot (was %s): the kernel does not allow changing it back",
				e.Object, shown(key, now), shown(key, e.Before.Value)),
			Run: func(context.Context) error { return nil },
		}, nil
	default:
		return journal.Undo{
			Change: Change{Key: key, Old: now, New: e.Before.Value}.String(),
			Run:    func(ctx context.Context) error { return h.Kernel.putBack(ctx, p.Journal(), e) },
		}, nil
	}
}

func lookAtFile(ctx context.Context, p *journal.Pass, e journal.Entry) (journal.Undo, error) {
	u, err := dropIns.Look(ctx, p, e)
	if run := u.Run; run != nil {
		u.Run = func(ctx context.Context) error { return remedy.File(run(ctx)) }
	}
	return u, remedy.File(err)
}

// putBack writes the original value. It does not check whether the value is as the
// step left it, since putting back another value may have dragged it along.
func (k Kernel) putBack(ctx context.Context, j *journal.Journal, e journal.Entry) error {
	all, err := k.companions(j, e)
	if err == nil {
		err = all.begin(ctx, j)
	}
	if err == nil {
		err = k.put(keyIn(e), e.Before.Value)
		if errors.Is(err, fs.ErrNotExist) { // the link is gone
			err = nil
		}
		err = errors.Join(err, all.hold(ctx, k, j))
	}
	if err != nil {
		return &Error{opPutBack, keyIn(e), e.Before.Value, err}
	}
	return nil
}
