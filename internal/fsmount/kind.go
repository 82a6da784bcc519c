// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/remedy"
	"github.com/slipway-dev/slipway/mount"
)

// System is a file system that a package mounts. Its mounts are objects of a kind: an object
// is what is mounted on a path, and visible there.
type System struct {
	Name   string // of the kind
	FSType string
	Kernel mount.Mounter // if nil, the running one
	// Keeps, if not nil, returns an error if the mount on path must stay. It ignores what is
	// below if isRemoved returns true: that is removed first.
	Keeps func(k mount.Mounter, path string, isRemoved func(path string) bool) error

	Note       string // follows the change that mounts
	Unrecorded bool   // no mount is undone, and so none has to be recognized
}

// otherRoot is the type of a cgroup2 that shows another cgroup than the host's root.
const (
	cgroup2     = "cgroup2"
	ofOtherRoot = " of another root"
	otherRoot   = cgroup2 + ofOtherRoot
)

// Kind returns the kind of the mounts. The value of a state is the source and, if it was
// read, the identity that the kernel gives.
func (s System) Kind() *ledger.Kind {
	k := &ledger.Kind{
		Name: s.Name, Space: "mount",
		Read: s.read, Write: s.write, Met: isMade, Same: same, Describe: s.describe, Keeps: s.keeps,
		Lost: lost, Owns: owns, Find: s.find,
		EndsWithBoot: func(string) bool { return true },
	}
	if s.Kernel == nil {
		k.Permission = s.permission
		k.Place = func(path string) (string, string) { return path, s.FSType }
	}
	return k
}

// Wants wants the mount on path, and the directories that are missing for it. Any mount will
// do that shows the right file system. Ready returns why none can be made at a place.
func (s System) Wants(ctx context.Context, path string, to ledger.State, ready func(mount.Mounter, Place) error) ledger.Wants {
	book := ledger.From(ctx)
	s.Unrecorded = book == nil
	to.Type, to.Value = s.FSType, mark(book.Mark())
	if resolved, err := durable.Resolve(path); err == nil { // else reading it fails for the same reason
		path = resolved
	}
	list, _ := ledger.DirWants(path, 0o755) // likewise
	return ledger.Wants{AtOnce: true, List: append(list, ledger.Want{
		Kind: s.Kind(), Object: path, To: to, Loose: true,
		Needs: []string{ledger.Want{Kind: ledger.Dir(), Object: path}.ID()},
		Ready: func(context.Context) error {
			p, err := Look(Or(s.Kernel), path)
			if err != nil || p.Shows(s.FSType) {
				return err
			}
			return ready(Or(s.Kernel), p)
		},
	})}
}

// Apply is [ledger.Apply] for a mount. Other processes may make it, or the directories for it,
// at the same time: then it looks again.
func Apply(ctx context.Context, w ledger.Wanter) error {
	for try := 1; ; try++ {
		err := ledger.Apply(ctx, w)
		if err == nil || try == 3 {
			return err
		}
		changes, checkErr := ledger.Check(ctx, w)
		isThere := checkErr == nil && len(changes) == 0
		if !isThere && !errors.Is(err, ledger.ErrChanged) && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}

// read describes the visible mount. One directory of another file system, as a container's
// volume, counts as an ordinary directory. A mount is whole from its first moment on, and so
// it has always stood still.
func (s System) read(_ context.Context, path string) (now ledger.State, err error) {
	now.Changed = time.Unix(0, 0)
	k := Or(s.Kernel)
	p, err := Look(k, path)
	if err != nil {
		return now, fmt.Errorf("%s: %w", s.Name, err)
	}
	switch {
	case p.Mount == "":
		return now, nil
	case p.Shows(s.FSType):
		now.Type = s.FSType
	case p.FSType == s.FSType:
		now.Type = otherRoot
	default:
		if now.Type, err = p.Occupied(k); err != nil || now.Type == "" {
			return now, err
		}
	}
	source := ""
	if !s.Unrecorded {
		source, err = p.source(k)
	}
	now.Value = source + " " + p.Mount
	return now, err
}

// source returns the source of the mount there, unless another has taken its place and, as
// kernels do that, its number.
func (p Place) source(k mount.Mounter) (source string, err error) {
	infos, err := Mounts(k)
	if err != nil {
		return "", err
	}
	for _, m := range infos {
		if is(m, p.Mount) {
			source, err = sourceOf(k, m)
		}
	}
	if _, _, now, statErr := k.Stat(p.Path); statErr != nil || now != p.Mount {
		return "", fmt.Errorf("%s: the mount is being exchanged: %w", p.Path, errors.Join(ledger.ErrChanged, statErr))
	}
	return source, err
}

// isMade reports whether a mount is one that was made for the want.
func isMade(now ledger.State, w ledger.Want) bool {
	return now.Type == w.To.Type && strings.HasPrefix(now.Value, w.To.Value)
}

// same reports whether both are one mount, of which another cgroup namespace may see another
// root. In another mount namespace the source alone tells that.
func same(a, b ledger.State) bool {
	if strings.TrimSuffix(a.Type, ofOtherRoot) != strings.TrimSuffix(b.Type, ofOtherRoot) {
		return false
	}
	sourceA, idA := cutIdentity(a.Value)
	sourceB, idB := cutIdentity(b.Value)
	isUnique := strings.Contains(idA, " unique=")
	return a.Value == b.Value || isUnique && idA == idB || isOurs(sourceA) && sourceA == sourceB
}

// cutIdentity splits the value of a state.
func cutIdentity(value string) (source, identity string) {
	at := max(strings.LastIndex(value, " id="), 0)
	return value[:at], value[at:]
}

func (s System) describe(path string, from, to ledger.State) string {
	switch {
	case to.IsZero():
		return "unmount " + s.FSType + " from " + path
	case from.Type == otherRoot:
		return "mount " + s.FSType + " anew on " + path + " (it shows another cgroup than the host's root)"
	}
	return "mount " + s.FSType + " on " + path + s.Note + hides(Or(s.Kernel), path)
}

func (s System) keeps(_ context.Context, path string, after ledger.StateAfter) (string, error) {
	if s.Keeps == nil {
		return "", nil
	}
	return "", s.Keeps(Or(s.Kernel), path, func(path string) bool {
		to, changes := after(ledger.File(), path)
		return changes && to.IsZero()
	})
}

func lost(_ string, original ledger.State) string {
	if original.IsZero() {
		return ""
	}
	return "what was unmounted is not mounted again"
}

func owns(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
		return errors.New("it is not an absolute, clean path below the root")
	}
	return nil
}

// find finds the mounts that were made here, for any agent.
func (s System) find(context.Context) (found []ledger.Marked, err error) {
	k := Or(s.Kernel)
	mounts, err := Mounts(k)
	for _, m := range mounts {
		if m.FSType != s.FSType {
			continue
		}
		source, _ := sourceOf(k, m) // one that cannot be looked at is not said to be ours
		if isOurs(source) {
			agent, dir := markOf(source)
			found = append(found, ledger.Marked{Object: m.Point, Agent: agent, Dir: dir, Remove: "umount " + m.Point})
		}
	}
	return found, err
}

func (s System) permission(context.Context, string) error {
	if len(remedy.Missing(remedy.SysAdmin)) == 0 {
		return nil
	}
	return hint(s.FSType, syscall.EPERM)
}
