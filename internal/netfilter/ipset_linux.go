// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package netfilter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/nlread"
)

// IPSet identifies an ipset.
type IPSet struct{ Name, Type string }

const (
	ipsetFlagListHeader = 1 << 2            // list sets without their elements (linux/netfilter/ipset/ip_set.h)
	ipsetBusyFor        = 2 * time.Second   // see destroyWhenUnused
	ipsetBusyPoll       = time.Second / 100 // likewise
)

// IPSets lists the owned sets; none if the kernel has no ipset.
func IPSets(ctx context.Context, owned func(name string) bool) ([]IPSet, error) {
	req := request(unix.NFNL_SUBSYS_IPSET, nl.IPSET_CMD_LIST, 0, unix.NFPROTO_IPV4,
		nl.NewRtAttr(nl.IPSET_ATTR_PROTOCOL, nl.Uint8Attr(nl.IPSET_PROTOCOL)),
		nl.NewRtAttr(nl.IPSET_ATTR_FLAGS|int(nl.NLA_F_NET_BYTEORDER), nl.BEUint32Attr(ipsetFlagListHeader)))
	return dump(ctx, req, nl.IPSET_CMD_LIST, func(_ uint8, b []byte) (IPSet, bool, error) {
		set, err := parseIPSet(b)
		return set, err == nil && owned(set.Name), err
	})
}

func parseIPSet(b []byte) (IPSet, error) {
	attrs, err := nlread.Values(b)
	return IPSet{unix.ByteSliceToString(attrs[nl.IPSET_ATTR_SETNAME]), unix.ByteSliceToString(attrs[nl.IPSET_ATTR_TYPENAME])}, err
}

// Destroy destroys sets. A set may be an element of another one to destroy, so it tries
// again as long as some go. It calls done for each set that it reached before ctx was
// done, by its index.
func Destroy(ctx context.Context, sets []IPSet, done func(i int, err error)) {
	WhileSomeGo(ctx, len(sets), func(i int) error { return destroy(ctx, sets[i]) }, func(i int, err error) {
		if errors.Is(err, unix.EBUSY) && ctx.Err() == nil {
			err = destroyWhenUnused(ctx, sets[i])
		}
		done(i, err)
	})
}

// WhileSomeGo removes count objects, which it knows by their indexes, and tries those that it
// cannot remove again as long as some go, since one may be in use by another. It calls done for
// each that it reached before ctx was done.
func WhileSomeGo(ctx context.Context, count int, remove func(i int) error, done func(i int, err error)) {
	todo := make([]int, count)
	for i := range todo {
		todo[i] = i
	}
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
func destroyWhenUnused(ctx context.Context, set IPSet) error {
	for start := time.Now(); ; {
		err := destroy(ctx, set)
		if !errors.Is(err, unix.EBUSY) || time.Since(start) >= ipsetBusyFor {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(ipsetBusyPoll):
		}
	}
}

func destroy(ctx context.Context, set IPSet) error {
	named, err := IPSets(ctx, func(name string) bool { return name == set.Name })
	if err != nil || len(named) == 0 {
		return err
	}
	if named[0] != set {
		return fmt.Errorf("it is of type %s now: %w", named[0].Type, failure.ErrReplaced)
	}
	if err = netlink.IpsetDestroy(set.Name); errors.Is(err, nl.IPSetError(nl.IPSET_ERR_BUSY)) {
		return unix.EBUSY
	}
	return nlread.Except(err, unix.ENOENT)
}
