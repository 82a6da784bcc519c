// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// probe is another user of RTNL, in a network namespace of its own: it looks
// at a link and changes it, over and over.
type probe struct {
	longest atomic.Int64
	quit    chan struct{}
	ended   chan error
}

func newProbe(nice int) (*probe, error) {
	p := &probe{quit: make(chan struct{}), ended: make(chan error, 1)}
	ready := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread goes with its namespace
		if err := unix.Setpriority(unix.PRIO_PROCESS, 0, nice); err != nil {
			ready <- fmt.Errorf("set priority: %w", err)
			return
		}
		p.ended <- p.loop(ready)
	}()
	return p, <-ready
}

func (p *probe) loop(ready chan<- error) error {
	h, lo, err := ownLink()
	ready <- err
	if err != nil {
		return err
	}
	defer h.Close()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for i := uint32(0); ; i++ {
		select {
		case <-p.quit:
			return nil
		case <-tick.C:
		}
		start := time.Now()
		if _, err := h.LinkByIndex(lo.Attrs().Index); err != nil {
			return fmt.Errorf("probe: get link: %w", err)
		}
		p.saw(time.Since(start))
		start = time.Now()
		if err := h.LinkSetGroup(lo, int(i%7)); err != nil {
			return fmt.Errorf("probe: change link: %w", err)
		}
		p.saw(time.Since(start))
	}
}

func ownLink() (*netlink.Handle, netlink.Link, error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, nil, fmt.Errorf("unshare: %w", err)
	}
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, nil, err
	}
	lo, err := h.LinkByName("lo")
	return h, lo, err
}

func (p *probe) saw(d time.Duration) {
	if int64(d) > p.longest.Load() {
		p.longest.Store(int64(d))
	}
}

// reset returns the longest wait so far, and begins again.
func (p *probe) reset() time.Duration { return time.Duration(p.longest.Swap(0)) }

// stop ends the probe and returns the longest wait.
func (p *probe) stop() (time.Duration, error) {
	close(p.quit)
	err := <-p.ended
	return p.reset(), err
}
