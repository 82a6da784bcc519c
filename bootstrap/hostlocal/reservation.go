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

// corrupt ends the names of files that were moved aside. host-local does not read an
// address from such a name.
const corrupt = ".corrupt"

// maxContent is far more than an ID and an interface name take.
const maxContent = 1024

// reservation is the file of an address: its name is the address, its content the ID
// of the sandbox and, in another line, the interface.
type reservation struct {
	name    string
	sandbox string
	damage  string // why it names no sandbox; empty if it does
	since   time.Time
}

// content matches a file of host-local's: the ID in the form of the CNI specification
// (CNI_CONTAINERID), and the interface, which its first versions left out.
var content = regexp.MustCompile(`^([a-zA-Z0-9][a-zA-Z0-9_.-]*)(?:\r?\n[^\s/:\x00]{1,15})?\s*$`)

func (r reservation) change() string {
	if r.damage != "" {
		return fmt.Sprintf("move the reservation of %s aside, to %s: %s", r.name, r.name+corrupt, r.damage)
	}
	return fmt.Sprintf("release %s: the container runtime does not know the sandbox %s", r.name, r.sandbox)
}

// read lists the old enough reservations, in the order of their addresses.
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
		case age(r.since, now, ofBoot) >= cmp.Or(s.minAge, defaultMinAge):
			all = append(all, r)
		}
	}
	return all, nil
}

// age returns how long ago a time was recorded, by the present clock or, if the clock was
// set since, by the earlier one, which would show ofBoot now: by that one it is younger
// if the clock was set forward. A time that the earlier clock has not reached was
// recorded by the present one.
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
	case !info.Mode().IsRegular():
		r.damage = "it is not a regular file"
	case info.Size() == 0:
		r.damage = "it is empty"
	case info.Size() > maxContent:
		r.damage = fmt.Sprintf("it has %d bytes", info.Size())
	}
	if r.damage != "" {
		return r, nil
	}
	text, err := dir.ReadFile(name, maxContent)
	if err != nil {
		return r, err
	}
	if match := content.FindSubmatch(text); match != nil {
		r.sandbox = string(match[1])
		return r, nil
	}
	r.damage = fmt.Sprintf("it names no sandbox, but holds %q", strings.ToValidUTF8(string(text[:min(len(text), 40)]), "?"))
	return r, nil
}

// release removes the file or moves it aside, if it is unchanged since read. The lock is
// held.
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
