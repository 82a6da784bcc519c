// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// The chains of iptables-nft and ip6tables-nft lie in nf_tables, in tables of
// the names of iptables' own. They are looked at and removed by netlink: a rule
// goes by its handle, which no text can mistake, and the host needs no tool.

// nftTable names a table that iptables-nft uses.
type nftTable struct {
	family uint8
	name   string
}

func (t nftTable) String() string { return ipFamily(t.family) + " " + t.name }

func ipFamily(family uint8) string {
	if family == unix.NFPROTO_IPV6 {
		return "ip6"
	}
	return "ip"
}

// iptablesTables are the names of the tables of iptables.
func iptablesTables() []string { return []string{"raw", "mangle", "nat", "filter", "security"} }

func (t nftTable) isIptables() bool {
	return (t.family == unix.NFPROTO_IPV4 || t.family == unix.NFPROTO_IPV6) && slices.Contains(iptablesTables(), t.name)
}

// nftChainRef identifies a chain: handles are not used again in a table.
type nftChainRef struct {
	nftTable
	name   string
	handle uint64
}

// nftRuleRef identifies a rule in a chain of somebody else's, that jumps to one
// that is owned.
type nftRuleRef struct {
	nftTable
	chain  string
	handle uint64
	target string
}

// nftState is what nf_tables holds that is owned.
type nftState struct {
	chains map[nftChainRef][]nftRuleRef // with the rules in them
	jumps  []nftRuleRef                 // rules in other chains that jump to them
}

// nft looks at the tables. It is empty where the kernel has no nf_tables.
func (s *session) nft(ctx context.Context) (*nftState, error) {
	state := &nftState{chains: map[nftChainRef][]nftRuleRef{}}
	sock, err := s.netfilter()
	if sock == nil {
		return state, err
	}
	req := nfRequest(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_GETCHAIN, unix.NLM_F_DUMP, unix.NFPROTO_UNSPEC)
	chains, err := nfDump(ctx, sock, req, unix.NFT_MSG_NEWCHAIN, s.own.parseNFTChain)
	if err != nil {
		return state, fmt.Errorf("list chains: %w", err)
	}
	tables := map[nftTable]map[string]nftChainRef{}
	for _, chain := range chains {
		state.chains[chain] = nil
		if tables[chain.nftTable] == nil {
			tables[chain.nftTable] = map[string]nftChainRef{}
		}
		tables[chain.nftTable][chain.name] = chain
	}
	for table, owned := range tables {
		if err := state.addRules(ctx, sock, table, owned); err != nil {
			return state, fmt.Errorf("list rules of %s: %w", table, err)
		}
	}
	slices.SortFunc(state.jumps, func(a, b nftRuleRef) int {
		return cmp.Or(compareTables(a.nftTable, b.nftTable), cmp.Compare(a.chain, b.chain), cmp.Compare(a.handle, b.handle))
	})
	return state, nil
}

func compareTables(a, b nftTable) int {
	return cmp.Or(cmp.Compare(a.family, b.family), cmp.Compare(a.name, b.name))
}

// sortedChains returns the owned chains in the order of their names.
func (s *nftState) sortedChains() []nftChainRef {
	var out []nftChainRef
	for chain := range s.chains {
		out = append(out, chain)
	}
	slices.SortFunc(out, func(a, b nftChainRef) int {
		return cmp.Or(compareTables(a.nftTable, b.nftTable), cmp.Compare(a.name, b.name))
	})
	return out
}

// addRules keeps only rules in owned chains and rules that jump to them: a
// node's tables may hold 100,000 others.
func (s *nftState) addRules(ctx context.Context, sock *nfnl, table nftTable, owned map[string]nftChainRef) error {
	req := nfRequest(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_GETRULE, unix.NLM_F_DUMP, table.family,
		nl.NewRtAttr(unix.NFTA_RULE_TABLE, nl.ZeroTerminated(table.name)))
	rules, err := nfDump(ctx, sock, req, unix.NFT_MSG_NEWRULE, func(family uint8, b []byte) (nftRuleRef, bool, error) {
		rule, err := parseNFTRule(family, b)
		_, inside := owned[rule.chain]
		_, jumps := owned[rule.target]
		return rule, err == nil && rule.nftTable == table && (inside || jumps), err
	})
	for _, rule := range rules {
		if chain, inside := owned[rule.chain]; inside {
			s.chains[chain] = append(s.chains[chain], rule)
		} else {
			s.jumps = append(s.jumps, rule)
		}
	}
	return err
}

// parseNFTChain reads a chain and tells whether it is owned. Those with a hook
// are the table's own.
func (o *owned) parseNFTChain(family uint8, b []byte) (nftChainRef, bool, error) {
	chain := nftChainRef{nftTable: nftTable{family: family}}
	base := false
	err := attrs(b, func(typ uint16, value []byte) error {
		switch typ {
		case unix.NFTA_CHAIN_TABLE:
			chain.nftTable.name = unix.ByteSliceToString(value)
		case unix.NFTA_CHAIN_NAME:
			chain.name = unix.ByteSliceToString(value)
		case unix.NFTA_CHAIN_HANDLE:
			chain.handle = be64(value)
		case unix.NFTA_CHAIN_HOOK:
			base = true
		}
		return nil
	})
	return chain, err == nil && !base && chain.isIptables() && hasPrefix(chain.name, o.ChainPrefixes), err
}

func parseNFTRule(family uint8, b []byte) (nftRuleRef, error) {
	rule := nftRuleRef{nftTable: nftTable{family: family}}
	err := attrs(b, func(typ uint16, value []byte) (err error) {
		switch typ {
		case unix.NFTA_RULE_TABLE:
			rule.nftTable.name = unix.ByteSliceToString(value)
		case unix.NFTA_RULE_CHAIN:
			rule.chain = unix.ByteSliceToString(value)
		case unix.NFTA_RULE_HANDLE:
			rule.handle = be64(value)
		case unix.NFTA_RULE_EXPRESSIONS:
			err = attrs(value, func(_ uint16, expr []byte) error {
				target, err := parseNFTJump(expr)
				rule.target = cmp.Or(target, rule.target)
				return err
			})
		}
		return err
	})
	return rule, err
}

// parseNFTJump returns the chain that an expression jumps or goes to: an
// immediate verdict.
func parseNFTJump(expr []byte) (target string, err error) {
	immediate := false
	var data []byte
	err = attrs(expr, func(typ uint16, value []byte) error {
		switch typ {
		case unix.NFTA_EXPR_NAME:
			immediate = unix.ByteSliceToString(value) == "immediate"
		case unix.NFTA_EXPR_DATA:
			data = value
		}
		return nil
	})
	if err != nil || !immediate {
		return "", err
	}
	path := []uint16{unix.NFTA_IMMEDIATE_DATA, unix.NFTA_DATA_VERDICT, unix.NFTA_VERDICT_CHAIN}
	for _, want := range path {
		var inner []byte
		err := attrs(data, func(typ uint16, value []byte) error {
			if typ == want {
				inner = value
			}
			return nil
		})
		if err != nil {
			return "", err
		}
		data = inner
	}
	return unix.ByteSliceToString(data), nil
}

// be64 reads a number in network byte order; 0 if there is none.
func be64(b []byte) uint64 {
	if len(b) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

func findNFT(ctx context.Context, s *session) error {
	if len(s.own.ChainPrefixes) == 0 {
		return nil
	}
	state, err := s.nft(ctx)
	for _, rule := range state.jumps {
		s.found(Item{
			Kind:   kindNFT,
			Object: fmt.Sprintf("%s rule %s -> %s", rule.nftTable, rule.chain, rule.target),
			Detail: fmt.Sprintf("handle %d", rule.handle),
			ref:    rule,
		})
	}
	for _, chain := range state.sortedChains() {
		s.found(Item{
			Kind:   kindNFT,
			Object: fmt.Sprintf("%s chain %s", chain.nftTable, chain.name),
			Detail: count(len(state.chains[chain]), "rule", "rules"),
			ref:    chain,
		})
	}
	return err
}
