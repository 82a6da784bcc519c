// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package netfilter

import (
	"context"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/nlread"
)

// nftaTableHandle is NFTA_TABLE_HANDLE, which x/sys does not name.
const nftaTableHandle = 4

// OwnTable identifies a table that is owned with everything in it: handles are
// not used again.
type OwnTable struct {
	Table
	Handle uint64
}

// OwnTables lists the owned tables; none if the kernel has no nf_tables.
func OwnTables(ctx context.Context, owned func(Table) bool) ([]OwnTable, error) {
	req := request(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_GETTABLE, unix.NLM_F_DUMP, unix.NFPROTO_UNSPEC)
	list, err := dump(ctx, req, unix.NFT_MSG_NEWTABLE, func(family uint8, b []byte) (OwnTable, bool, error) {
		table, err := parseTable(family, b)
		return table, err == nil && owned(table.Table), err
	})
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	return list, nil
}

func parseTable(family uint8, b []byte) (OwnTable, error) {
	attrs, err := nlread.Values(b)
	return OwnTable{Table{family, unix.ByteSliceToString(attrs[unix.NFTA_TABLE_NAME])}, be64(attrs[nftaTableHandle])}, err
}

// DeleteTable deletes a table with everything in it; already gone is success.
func DeleteTable(t OwnTable) error {
	refused, err := transaction(unix.NFNL_SUBSYS_NFTABLES, []*nl.NetlinkRequest{
		request(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_DELTABLE, unix.NLM_F_ACK, t.family,
			handle(nftaTableHandle, t.Handle)),
	})
	if err == nil {
		err = refused[0]
	}
	return nlread.Except(err, unix.ENOENT)
}
