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
	sock, err := s.sockets.netfilter()
	if err != nil {
		return err
	}
	list, err := sock.Tables(ctx, func(t netfilter.Table) bool {
		return s.own.ownsNFTable(NFTable{t.Family(), t.Name()})
	})
	for _, t := range list {
		s.found(Item{Kind: kindNFTable, Object: t.String(), Detail: fmt.Sprintf("handle %d", t.Handle), object: nfTableObject{t}})
	}
	return err
}

func (o nfTableObject) remove(_ context.Context, r *removal) error {
	sock, err := r.sockets.netfilter()
	if err != nil {
		return err
	}
	return sock.DeleteTable(o.OwnTable)
}
