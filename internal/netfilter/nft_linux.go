// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package netfilter

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sort"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/nlread"
)

// Table names a table.
type Table struct {
	family uint8
	name   string
}

// String returns a text such as "ip nat".
func (t Table) String() string { return t.Family() + " " + t.name }

// Name returns the table's name.
func (t Table) Name() string { return t.name }

var familyNames = map[uint8]string{
	unix.NFPROTO_INET: "inet", unix.NFPROTO_IPV4: "ip", unix.NFPROTO_IPV6: "ip6",
	unix.NFPROTO_ARP: "arp", unix.NFPROTO_BRIDGE: "bridge", unix.NFPROTO_NETDEV: "netdev",
}

// Family returns the table's family, as nft(8) calls it.
func (t Table) Family() string {
	return cmp.Or(familyNames[t.family], fmt.Sprintf("family %d", t.family))
}

func (t Table) isIptables() bool {
	return (t.family == unix.NFPROTO_IPV4 || t.family == unix.NFPROTO_IPV6) && slices.Contains(Tables(), t.name)
}

// Object is a [Chain] or a [Rule].
type Object interface{ deletion() *nl.NetlinkRequest }

// Chain identifies a chain: handles are not used again in a table.
type Chain struct {
	Table
	Name   string
	handle uint64
}

// Rule identifies a rule.
type Rule struct {
	Table
	Chain   string
	Handle  uint64
	JumpsTo string
	Comment string // if that makes it owned
}

// Owned describes the owned part of the tables of iptables: chains, with the rules that
// jump to them, and the rules in other chains that have an owned comment. Comment may be nil.
type Owned struct {
	Chain, Comment func(name string) bool
}

// CommentOf returns the owned one of a rule's comments.
func (o Owned) CommentOf(comments []string) string {
	if i := slices.IndexFunc(comments, o.Comment); i >= 0 {
		return comments[i]
	}
	return ""
}

// Ruleset is the owned part of nf_tables.
type Ruleset struct {
	Chains map[Chain][]Rule // with the rules in them
	Rules  []Rule           // owned rules in other chains
}

// List lists the owned objects. It is empty if the kernel has no nf_tables, and with
// an error holds what could be listed.
func List(ctx context.Context, owned Owned) (*Ruleset, error) {
	set := &Ruleset{Chains: map[Chain][]Rule{}}
	req := request(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_GETCHAIN, unix.NLM_F_DUMP, unix.NFPROTO_UNSPEC)
	list, err := dump(ctx, req, unix.NFT_MSG_NEWCHAIN, func(family uint8, b []byte) (Chain, bool, error) {
		chain, base, err := parseChain(family, b)
		return chain, err == nil && !base && chain.isIptables() && owned.Chain(chain.Name), err
	})
	if err != nil {
		return set, fmt.Errorf("list chains: %w", err)
	}
	tables := map[Table]map[string]Chain{} // the owned chains of each
	for _, f := range Families() {
		for _, name := range Tables() {
			if owned.Comment != nil {
				tables[Table{f.protocol, name}] = map[string]Chain{}
			}
		}
	}
	for _, chain := range list {
		set.Chains[chain] = nil
		if tables[chain.Table] == nil {
			tables[chain.Table] = map[string]Chain{}
		}
		tables[chain.Table][chain.Name] = chain
	}
	for table, chains := range tables {
		if err := set.addRules(ctx, table, chains, owned); err != nil {
			return set, fmt.Errorf("list rules of %s: %w", table, err)
		}
	}
	sort.Slice(set.Rules, func(i, j int) bool {
		a, b := set.Rules[i], set.Rules[j]
		return cmp.Or(cmp.Compare(a.family, b.family), cmp.Compare(a.name, b.name), cmp.Compare(a.Chain, b.Chain), cmp.Compare(a.Handle, b.Handle)) < 0
	})
	return set, nil
}

// HasChain reports whether there is a chain of that name. The request does not create
// one.
func (f Family) HasChain(table, name string) (bool, error) {
	req := request(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_GETCHAIN, 0, f.protocol,
		text(unix.NFTA_CHAIN_TABLE, table), text(unix.NFTA_CHAIN_NAME, name))
	_, err := req.Execute(unix.NETLINK_NETFILTER, 0)
	switch err {
	case unix.ENOENT, unix.EINVAL, unix.EOPNOTSUPP, unix.EPROTONOSUPPORT: // no such chain or table, no nf_tables, or no netfilter
		return false, nil
	}
	return err == nil, os.NewSyscallError("netlink", err)
}

// SortedChains returns the chains in the order of their names.
func (s *Ruleset) SortedChains() []Chain {
	return slices.SortedFunc(maps.Keys(s.Chains), func(a, b Chain) int {
		return cmp.Or(cmp.Compare(a.family, b.family), cmp.Compare(a.name, b.name), cmp.Compare(a.Name, b.Name), cmp.Compare(a.handle, b.handle))
	})
}

// addRules adds the rules in owned chains and the owned ones in others, but not the rest,
// which may be 100,000.
func (s *Ruleset) addRules(ctx context.Context, table Table, chains map[string]Chain, owned Owned) error {
	rules, err := listRules(ctx, table, func(rule *parsedRule) bool {
		_, inside := chains[rule.Chain]
		_, jumps := chains[rule.JumpsTo]
		if !inside && !jumps && owned.Comment != nil {
			rule.Comment = owned.CommentOf(rule.comments)
		}
		return inside || jumps || rule.Comment != ""
	})
	for _, rule := range rules {
		if chain, inside := chains[rule.Chain]; inside {
			s.Chains[chain] = append(s.Chains[chain], rule.Rule)
		} else {
			s.Rules = append(s.Rules, rule.Rule)
		}
	}
	return err
}

// rules lists the wanted rules of a table.
func listRules(ctx context.Context, table Table, wanted func(*parsedRule) bool) ([]parsedRule, error) {
	req := request(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_GETRULE, unix.NLM_F_DUMP, table.family,
		text(unix.NFTA_RULE_TABLE, table.name))
	return dump(ctx, req, unix.NFT_MSG_NEWRULE, func(family uint8, b []byte) (parsedRule, bool, error) {
		rule, err := parseRule(family, b)
		return rule, err == nil && rule.Table == table && wanted(&rule), err
	})
}

// parseChain reads a chain, and reports whether it has a hook, as the table's own chains
// have.
func parseChain(family uint8, b []byte) (chain Chain, base bool, err error) {
	attrs, err := nlread.Values(b)
	chain.Table = Table{family, unix.ByteSliceToString(attrs[unix.NFTA_CHAIN_TABLE])}
	chain.Name, chain.handle = unix.ByteSliceToString(attrs[unix.NFTA_CHAIN_NAME]), be64(attrs[unix.NFTA_CHAIN_HANDLE])
	return chain, attrs[unix.NFTA_CHAIN_HOOK] != nil, err
}

// parsedRule is a rule with its comments, and the names of the sets and maps that it looks
// up in.
type parsedRule struct {
	Rule
	comments, lookups []string
}

func parseRule(family uint8, b []byte) (rule parsedRule, err error) {
	attrs, err := nlread.Values(b)
	rule.Table = Table{family, unix.ByteSliceToString(attrs[unix.NFTA_RULE_TABLE])}
	rule.Chain, rule.Handle = unix.ByteSliceToString(attrs[unix.NFTA_RULE_CHAIN]), be64(attrs[unix.NFTA_RULE_HANDLE])
	if err != nil {
		return rule, err
	}
	var exprErr error
	err = nlread.Attributes(attrs[unix.NFTA_RULE_EXPRESSIONS], func(_ uint16, expr []byte) {
		exprErr = errors.Join(exprErr, rule.parseExpr(expr))
	})
	return rule, errors.Join(err, exprErr)
}

// parseExpr reads an expression: a verdict, a lookup, or the comment of iptables.
func (r *parsedRule) parseExpr(expr []byte) error {
	attrs, err := nlread.Values(expr)
	if err != nil {
		return err
	}
	data := attrs[unix.NFTA_EXPR_DATA]
	switch unix.ByteSliceToString(attrs[unix.NFTA_EXPR_NAME]) {
	case "immediate":
		chain, err := verdictChain(data, unix.NFTA_IMMEDIATE_DATA)
		r.JumpsTo = cmp.Or(chain, r.JumpsTo)
		return err
	case "lookup":
		set, err := nlread.Value(data, unix.NFTA_LOOKUP_SET)
		r.lookups = append(r.lookups, unix.ByteSliceToString(set))
		return err
	case "match":
		match, err := nlread.Values(data)
		if unix.ByteSliceToString(match[unix.NFTA_MATCH_NAME]) == "comment" {
			r.comments = append(r.comments, unix.ByteSliceToString(match[unix.NFTA_MATCH_INFO])) // linux/netfilter/xt_comment.h
		}
		return err
	}
	return nil
}

// verdictChain returns the chain that a verdict within an attribute of data jumps or goes to.
func verdictChain(data []byte, within uint16) (chain string, err error) {
	for _, inner := range []uint16{within, unix.NFTA_DATA_VERDICT, unix.NFTA_VERDICT_CHAIN} {
		if data, err = nlread.Value(data, inner); err != nil {
			return "", err
		}
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
