// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup/internal/rtnl"
	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/nlread"
)

// linkObject is a network link.
type linkObject struct{ rtnl.LinkID }

// findLinks lists owned links. It continues if the programs on them cannot be listed.
func findLinks(ctx context.Context, s *search) error {
	list, err := s.links.all(ctx)
	if err != nil {
		return err
	}
	names, err := s.links.names(ctx)
	for _, l := range list {
		if s.ownsLink(l) {
			item := Item{Kind: kindLink, Object: l.Name, Detail: l.Kind, object: linkObject{l.LinkID}}
			if peer := names[l.Lower]; peer != "" && (l.Kind == "veth" || l.Kind == "netkit") {
				item.Detail += ", peer " + peer
			}
			s.found(item, nameOf(kindLink, names[l.Lower]))
		}
	}
	return err
}

// remove deletes one link; removeLinks deletes many.
func (l linkObject) remove(_ context.Context, r *removal) error {
	now, err := r.kernel.Link(l.Index)
	if nlread.Gone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if now.LinkID != l.LinkID {
		return fmt.Errorf("%s has its index: %w", now.Name, failure.ErrReplaced)
	}
	err = netlink.LinkDel(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: l.Index}})
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("%w (a device of kind %q cannot be deleted)", err, l.Kind)
	case err != nil && !nlread.Gone(err):
		return err
	}
	return l.verifyDeleted(&r.kernel)
}

// verifyDeleted returns an error for a link that the kernel reported as deleted but did
// not delete: the fallback device of a tunnel module (tunl0, sit0), under whatever name.
// A veth is never one.
func (l linkObject) verifyDeleted(kernel *rtnl.Conn) error {
	if l.Kind == "veth" {
		return nil
	}
	now, err := kernel.Link(l.Index)
	if err != nil || now.LinkID != l.LinkID {
		return nil
	}
	return fmt.Errorf("the kernel keeps it: it is a fallback device that goes with its module (%s)", l.Kind)
}
