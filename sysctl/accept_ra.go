// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/slipway-dev/slipway/internal/code"
)

// guardRouters puts accept_ra = 2 before the changes that turn IPv6 forwarding on,
// for each link whose default route the kernel learnt from a router: a host that
// forwards drops such routes and ignores further advertisements, unless accept_ra
// is 2 (ip-sysctl: accept_ra; the kernel drops the routes of every link, whichever
// link's forwarding is turned on). If that cannot be determined, or accept_ra was
// set to 0 on purpose, forwarding is not turned on, and the error names the link.
func (k Kernel) guardRouters(changes []Change) ([]Change, error) {
	lister, ok := k.files().(routerLister)
	if !ok || !anyForwards6(changes) {
		return changes, nil
	}
	links, err := lister.Routers()
	if err != nil {
		return without6(changes), fmt.Errorf("turn IPv6 forwarding on: whether %w: %w", errRouter, err)
	}
	var guards []Change
	var errs []error
	for _, link := range links {
		guard, err := k.guard(link)
		if err != nil {
			errs = append(errs, err)
		} else if guard != nil {
			guards = append(guards, *guard)
		}
	}
	if len(errs) > 0 {
		return without6(changes), errors.Join(errs...)
	}
	return append(guards, changes...), nil
}

func (k Kernel) guard(link string) (*Change, error) {
	at := path.Join("net/ipv6/conf", link, "accept_ra")
	value, err := k.read(at)
	switch {
	case err != nil:
		return nil, keepsOff(link, err)
	case sameValue(value, "2"):
		return nil, nil
	case !sameValue(value, "1"):
		return nil, keepsOff(link, fmt.Errorf("%s is %s; set it to 2, or the route by hand", keyOf(at), value))
	}
	why := "to keep the default route of " + link + " when IPv6 forwarding is on"
	return &Change{Key: keyOf(at), Old: value, New: "2", Why: why, guard: true}, nil
}

var errRouter = code.New(code.SysctlRouteLost, "a default route would be lost")

func keepsOff(link string, err error) error {
	return fmt.Errorf("turn IPv6 forwarding on: %w: link %s has it from router advertisements: %w", errRouter, link, err)
}

func anyForwards6(changes []Change) bool { return len(without6(changes)) < len(changes) }

func without6(changes []Change) []Change {
	var rest []Change
	for _, c := range changes {
		if !c.forwards6() {
			rest = append(rest, c)
		}
	}
	return rest
}

// forwards6 reports whether c turns IPv6 forwarding on, anywhere but in the
// template for later links.
func (c Change) forwards6() bool {
	at, _ := c.Key.path()
	rest, ok := strings.CutPrefix(at, "net/ipv6/conf/")
	link, name, _ := strings.Cut(rest, "/")
	return ok && name == "forwarding" && link != "default" && !sameValue(c.New, "0")
}
