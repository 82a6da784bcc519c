// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup/internal/iptables"
	"github.com/slipway-dev/slipway/internal/netfilter"
)

func findIPSets(ctx context.Context, s *search) error {
	if !s.own.hasNetfilter(kindSet, s.own.IPSetPrefixes) {
		return nil
	}
	sets, err := netfilter.IPSets(ctx, s.own.ownsIPSet)
	for _, set := range sets {
		s.found(Item{Kind: kindIPSet, Object: set.Name, Detail: set.Type, object: set})
	}
	return err
}

// removeIPSets destroys sets; one may be a member of another.
func removeIPSets(ctx context.Context, r *removal, sets []netfilter.IPSet, done func(i int, err error)) {
	netfilter.Destroy(ctx, sets, func(i int, err error) {
		if errors.Is(err, unix.EBUSY) {
			users, lookErr := iptables.IPSetUsers(ctx, sets[i].Name)
			if len(users) == 0 {
				users = []string{"another set, or a rule that no tool of iptables on the host lists"}
			}
			err = netfilter.UsedBy(errors.Join(err, lookErr), users...)
		}
		done(i, err)
	})
}
