// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"fmt"

	"github.com/slipway-dev/slipway/internal/netfilter"
)

// nfTableObject is a table of nftables.
type nfTableObject struct{ netfilter.OwnTable }

func findNFTables(ctx context.Context, s *search) error {
	if len(s.own.NFTables) == 0 {
		return nil
	}
	list, err := netfilter.OwnTables(ctx, func(t netfilter.Table) bool {
		return s.own.ownsNFTable(NFTable{t.Family(), t.Name()})
	})
	for _, t := range list {
		s.found(Item{Kind: kindNFTable, Object: t.String(), Detail: fmt.Sprintf("handle %d", t.Handle), object: nfTableObject{t}})
	}
	return err
}

func (o nfTableObject) remove(context.Context, *removal) error {
	return netfilter.DeleteTable(o.OwnTable)
}
