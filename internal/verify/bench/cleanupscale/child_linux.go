// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/slipway-dev/slipway/cleanup"
)

// childFlag makes the program do one thing in the namespaces that it is in,
// and print an outcome, so that its memory is its own.
const childFlag = "-child"

// The ways to remove links.
const (
	roleOurs   = "ours"
	roleSingle = "one-by-one"
	roleCilium = "cilium"
)

func child(role string) error {
	runtime.LockOSThread()
	var out outcome
	var err error
	start := time.Now()
	switch role {
	case roleOurs:
		out.Inventory, err = ours()
	case roleSingle:
		err = oneByOne()
	default:
		err = fmt.Errorf("unknown role %q", role)
	}
	if err != nil {
		return err
	}
	out.Total = time.Since(start)
	return json.NewEncoder(os.Stdout).Encode(out)
}

// ours is the whole of a cleanup.
func ours() (inventory time.Duration, err error) {
	own := cleanup.Cilium()
	c := cleanup.Leftovers{Ownership: own, Scope: cleanup.AllState, BPFRoots: []string{bpfRoot}, CgroupRoot: "/nowhere"}
	start := time.Now()
	inv, err := c.Inventory(context.Background())
	if err != nil {
		return 0, err
	}
	inventory = time.Since(start)
	return inventory, c.Remove(context.Background(), inv.Items)
}

// oneByOne deletes the links and nothing else.
func oneByOne() error {
	h, err := netlink.NewHandle()
	if err != nil {
		return err
	}
	defer h.Close()
	links, err := h.LinkList()
	if err != nil {
		return err
	}
	ours := regexp.MustCompile(`^lxc[0-9a-f]{5}$`)
	for _, l := range links {
		if !ours.MatchString(l.Attrs().Name) {
			continue
		}
		if err := h.LinkDel(l); err != nil {
			return fmt.Errorf("delete %s: %w", l.Attrs().Name, err)
		}
	}
	return nil
}
