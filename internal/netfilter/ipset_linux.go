// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package netfilter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/nlmsg"
)

// IPSet identifies an ipset.
type IPSet struct{ Name, Type string }

// Numbers of linux/netfilter/ipset/ip_set.h.
const (
	ipsetProtocol       = 6
	ipsetDestroy        = 3
	ipsetList           = 7
	ipsetAttrProtocol   = 1
	ipsetAttrName       = 2
	ipsetAttrType       = 3
	ipsetAttrFlags      = 6
	ipsetFlagListHeader = 1 << 2            // list sets without their elements
	ipsetErrBusy        = unix.Errno(4100)  // the set is used
	ipsetBusyFor        = 2 * time.Second   // see destroyWhenUnused
	ipsetBusyPoll       = time.Second / 100 // likewise
)

func ipsetRequest(cmd, flags uint16, attr []byte) nlmsg.Request {
	return request(unix.NFNL_SUBSYS_IPSET, cmd, flags, unix.NFPROTO_IPV4, nlmsg.Append(nil, ipsetAttrProtocol, []byte{ipsetProtocol}), attr)
}

// IPSets lists the owned sets; none if the kernel has no ipset.
func (c *Conn) IPSets(ctx context.Context, owned func(name string) bool) ([]IPSet, error) {
	flags := binary.BigEndian.AppendUint32(nil, ipsetFlagListHeader)
	req := ipsetRequest(ipsetList, unix.NLM_F_DUMP, nlmsg.Append(nil, ipsetAttrFlags|unix.NLA_F_NET_BYTEORDER, flags))
	return dump(ctx, c, req, ipsetList, func(_ uint8, b []byte) (IPSet, bool, error) {
		set, err := parseIPSet(b)
		return set, err == nil && owned(set.Name), err
	})
}

func parseIPSet(b []byte) (IPSet, error) {
	attrs, err := attributes(b)
	return IPSet{unix.ByteSliceToString(attrs[ipsetAttrName]), unix.ByteSliceToString(attrs[ipsetAttrType])}, err
}

// Destroy destroys sets. A set may be an element of another one to destroy, so it tries
// again as long as some go. It calls done for each set that it reached before ctx was
// done, by its index.
func (c *Conn) Destroy(ctx context.Context, sets []IPSet, done func(i int, err error)) {
	var todo []int
	for i := range sets {
		todo = append(todo, i)
	}
	WhileSomeGo(ctx, todo, func(i int) error { return c.destroy(ctx, sets[i]) }, func(i int, err error) {
		if errors.Is(err, ipsetErrBusy) && ctx.Err() == nil {
			err = c.destroyWhenUnused(ctx, sets[i])
		}
		done(i, err)
	})
}

// WhileSomeGo removes objects, which it knows by their indexes, and tries those that it cannot
// remove again as long as some go, since one may be in use by another. It calls done for each
// that it reached before ctx was done.
func WhileSomeGo(ctx context.Context, todo []int, remove func(i int) error, done func(i int, err error)) {
	for some := true; some; {
		var failed []int
		errs := map[int]error{}
		for _, i := range todo {
			if ctx.Err() != nil {
				return
			}
			if errs[i] = remove(i); errs[i] != nil {
				failed = append(failed, i)
				continue
			}
			done(i, nil)
		}
		some, todo = len(failed) < len(todo), failed
		for _, i := range failed {
			if !some {
				done(i, errs[i])
			}
		}
	}
}

// destroyWhenUnused waits a while until a set is no longer used: nf_tables releases the
// objects of a rule some time after the rule is gone.
func (c *Conn) destroyWhenUnused(ctx context.Context, set IPSet) error {
	for start := time.Now(); ; {
		err := c.destroy(ctx, set)
		if !errors.Is(err, ipsetErrBusy) || time.Since(start) >= ipsetBusyFor {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(ipsetBusyPoll):
		}
	}
}

func (c *Conn) destroy(ctx context.Context, set IPSet) error {
	named, err := c.IPSets(ctx, func(name string) bool { return name == set.Name })
	if err != nil || len(named) == 0 {
		return err
	}
	if named[0] != set {
		return fmt.Errorf("it is of type %s now: %w", named[0].Type, failure.ErrReplaced)
	}
	req := ipsetRequest(ipsetDestroy, unix.NLM_F_ACK, nlmsg.String(ipsetAttrName, set.Name))
	switch err := c.socket.Do(req, 0, nil); {
	case errors.Is(err, ipsetErrBusy):
		return busyErrno{ipsetErrBusy}
	case nlmsg.Gone(err):
		return nil
	default:
		return err
	}
}

// busyErrno is an error number of ipset's own, for which the system has no text.
type busyErrno struct{ unix.Errno }

func (busyErrno) Error() string { return unix.EBUSY.Error() }

func (b busyErrno) Is(other error) bool { return other == unix.EBUSY || other == b.Errno }
