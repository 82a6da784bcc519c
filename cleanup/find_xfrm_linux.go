// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/cleanup/internal/rtnl"
	"github.com/slipway-dev/slipway/internal/failure"
)

// xfrmObject is an IPsec policy or state.
type xfrmObject struct{ rtnl.XFRMID }

// findXFRM lists owned policies and then states: a policy without its states
// drops packets.
func findXFRM(ctx context.Context, s *search) error {
	if len(s.own.XFRM) == 0 {
		return nil
	}
	var errs failure.Set
	for _, sort := range []struct {
		kind string
		list func(context.Context) ([]rtnl.XFRM, error)
	}{{kindXFRMPolicy, s.ipsec.Policies}, {kindXFRMState, s.ipsec.States}} {
		list, err := sort.list(ctx)
		if errors.Is(err, unix.EPROTONOSUPPORT) {
			return nil // a kernel without xfrm
		}
		if err != nil {
			errs.Add(fmt.Errorf("list %s: %w", sort.kind, hint(sort.kind, err)))
		}
		for _, x := range list {
			if mark := Mark(x.Mark); s.own.ownsXFRM(mark) {
				s.found(Item{Kind: sort.kind, Object: x.Text, Detail: "mark " + mark.text(), object: xfrmObject{x.XFRMID}})
			}
		}
	}
	return errs.Join()
}

func (x xfrmObject) remove(_ context.Context, r *removal) error {
	return r.ipsec.DeleteXFRM(x.XFRMID)
}
