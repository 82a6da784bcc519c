// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostlocal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/input"
)

// corrupt ends the names of files that were moved aside. host-local takes no address
// from such a name.
const corrupt = ".corrupt"

// maxContent is far more than an ID and the name of an interface.
const maxContent = 1024

// reservation is the file of an address: its name is the address, its content the ID
// of the sandbox and, in another line, the interface.
type reservation struct {
	name    string
	sandbox string
	damage  string // why it names no sandbox; empty: it does
	stuck   string // why it can only be told of; empty: it can be moved aside
	since   time.Time
}

// content is what host-local writes: the ID as the CNI specification has it
// (CNI_CONTAINERID), and the interface, which its first versions left out.
var content = regexp.MustCompile(`^([a-zA-Z0-9][a-zA-Z0-9_.-]*)(?:\r?\n[^\s/:\x00]{1,15})?\s*$`)

func (r reservation) change() string {
	if r.damage != "" {
		return fmt.Sprintf("move the reservation of %s aside, to %s: %s", r.name, r.name+corrupt, r.damage)
	}
	return fmt.Sprintf("release %s: the container runtime does not know the sandbox %s", r.name, r.sandbox)
}

// read lists the reservations that are old enough, in the order of their addresses.
func (s Store) read(ctx context.Context, dir *durable.Dir) (all []reservation, err error) {
	names, err := input.Collect(ctx, dir.Path(), dir.All(), isAddress)
	if err != nil {
		return nil, fmt.Errorf("host-local's store: %w", err)
	}
	slices.SortFunc(names, compareAddresses)
	now, ofBoot := time.Now(), clockOfBoot()
	for _, name := range names {
		r, err := readReservation(dir, name)
		switch {
		case isGone(err):
		case err != nil:
			return nil, fmt.Errorf("host-local's store: %w", err)
		case age(r.since, now, ofBoot) >= cmp.Or(s.MinAge, defaultMinAge):
			all = append(all, r)
		}
	}
	return all, nil
}

// age returns how long ago a time was noted, by the clock that is now or, if the clock
// was set since, by the one of before, which is ofBoot now: by that one it is younger
// where the clock was set forward. What that clock has not come to was noted by the new.
func age(since, now, ofBoot time.Time) time.Duration {
	if ofBoot.Before(since) {
		return now.Sub(since)
	}
	return min(now.Sub(since), ofBoot.Sub(since))
}

func isAddress(name string) bool {
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Zone() == ""
}

func compareAddresses(a, b string) int {
	x, _ := netip.ParseAddr(a) // both are addresses
	y, _ := netip.ParseAddr(b)
	return x.Compare(y)
}

func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func readReservation(dir *durable.Dir, name string) (reservation, error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return reservation{}, err
	}
	r := reservation{name: name, since: info.ModTime()}
	switch {
	case info.IsDir(): // what is in it may be anything
		r.damage, r.stuck = "it is a directory", "it is a directory"
	case !info.Mode().IsRegular():
		r.damage = "it is no regular file"
	case info.Size() == 0:
		r.damage = "it is empty"
	case info.Size() > maxContent:
		r.damage = fmt.Sprintf("it has %d bytes", info.Size())
	}
	if r.damage != "" {
		return r, r.lookAside(dir)
	}
	text, err := dir.ReadFile(name, maxContent)
	if err != nil {
		return r, err
	}
	if match := content.FindSubmatch(text); match != nil {
		r.sandbox = string(match[1])
		return r, nil
	}
	r.damage = fmt.Sprintf("it names no sandbox, but has %q", strings.ToValidUTF8(string(text[:min(len(text), 40)]), "?"))
	return r, r.lookAside(dir)
}

// lookAside notes a directory in the place that the file is to be moved to.
func (r *reservation) lookAside(dir *durable.Dir) error {
	info, err := dir.Lstat(r.name + corrupt)
	switch {
	case isGone(err):
		return nil
	case err == nil && info.IsDir() && r.stuck == "":
		r.stuck = fmt.Sprintf("%s, and cannot be moved aside: %s is a directory", r.damage, r.name+corrupt)
	}
	return err
}

// release removes the file or moves it aside, if it is still what was seen. The lock
// is held.
func (r reservation) release(dir *durable.Dir) error {
	now, err := readReservation(dir, r.name)
	switch {
	case isGone(err):
		return nil
	case err != nil:
		return err
	case now != r:
		return nil // it was released, and reserved anew
	case r.damage == "":
		return dir.Remove(r.name)
	}
	return dir.Rename(r.name, r.name+corrupt) // over an older one, so that they do not pile up
}
