// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Ownership describes the property of an agent. It is plain data: nothing is guessed, and
// the zero value owns nothing. Property of the node or of another agent cannot be owned:
// see [Ownership.Validate].
type Ownership struct {
	// Agent is the agent's name, in lower-case letters, digits and single -, . and _.
	// Things known to be an agent's can be owned by that agent only. Known agents are
	// antrea, aws-vpc-cni, calico, cilium, flannel, kindnet, kube-router, multus,
	// ovn-kubernetes, tetragon, weave and whereabouts, and other programs on nodes, such
	// as docker and kube-proxy. Files and directories of the agent begin with its name.
	Agent string `json:"agent,omitempty"`

	// Exceptions are single things that are owned although they belong to another agent,
	// or lie in a place that agents do not use.
	Exceptions []Exception `json:"exceptions,omitempty"`

	// Programs are full names of BPF programs. The kernel stores the first 15
	// bytes of a name, so these are compared.
	//
	// A program is owned, too, if it uses a map that is pinned at one of Pins,
	// or if it or a bpf_link with it is pinned there.
	Programs []string `json:"programs,omitempty"`

	// Filters are full names of tc filters; {link} stands for the name of the link that
	// the filter is on, as in "cil_from_netdev-{link}". A filter is owned, too, if its
	// program is.
	Filters []string `json:"filters,omitempty"`

	// Pins are patterns ([path.Match]) of paths below the root of a BPF file
	// system. Only the last element may have wildcards. A directory that
	// matches is owned with everything in it.
	Pins []string `json:"pins,omitempty"`

	// Links are rules for network links; one that matches is enough. Routes of all tables
	// that lead only through owned links are owned as well. If a route also leads through
	// other links, only its hops through owned links are removed.
	Links []LinkRule `json:"links,omitempty"`

	// Routes are rules for routes that lead through no owned link.
	Routes []RouteRule `json:"routes,omitempty"`

	// Rules are rules of policy routing, for IPv4 and IPv6.
	Rules []PolicyRule `json:"rules,omitempty"`

	// LocalRule is the priority to which the agent moves the rule that the kernel makes
	// with priority 0, to look up the table local first; 0 means that it does not move
	// it. The moved rule is owned if it equals the kernel's, including its protocol. It
	// is moved back: a rule with priority 0 is added if there is none, then the moved one
	// is removed.
	LocalRule uint32 `json:"localRule,omitempty" yaml:"localRule"`

	// SharedTables are routing tables that others use as well. Routes in them and rules
	// that lead to them are reported in [Inventory.Left] if they are not owned.
	SharedTables []uint32 `json:"sharedTables,omitempty" yaml:"sharedTables"`

	// NetNS are patterns ([path.Match]) of the names of network namespaces (ip-netns(8)).
	// The name is removed; the namespace lives on while a process is in it.
	NetNS []string `json:"netNS,omitempty" yaml:"netNS"`

	// XFRM are rules for IPsec policies and states, by their marks.
	XFRM []XFRMRule `json:"xfrm,omitempty"`

	// ChainPrefixes are prefixes of the names of iptables and ip6tables chains. The
	// chains, the rules in them, and the rules that jump to them are owned.
	ChainPrefixes []string `json:"chainPrefixes,omitempty" yaml:"chainPrefixes"`

	// RuleComments are patterns ([path.Match]) of comments (iptables-extensions(8)) of rules
	// in other chains of iptables and ip6tables. Such a rule is owned whatever it does.
	RuleComments []string `json:"ruleComments,omitempty" yaml:"ruleComments"`

	// NFTables are nftables tables that belong to the agent alone, with everything in them.
	NFTables []NFTable `json:"nfTables,omitempty" yaml:"nfTables"`

	// IPSetPrefixes are prefixes of the names of ipsets.
	IPSetPrefixes []string `json:"ipsetPrefixes,omitempty" yaml:"ipsetPrefixes"`

	// Mounts are rules for mounts. [Ownership.Pins] are searched in owned BPF file
	// systems as well.
	Mounts []MountRule `json:"mounts,omitempty"`

	// Files are absolute paths of files, which are removed in this order. Anything else
	// at such a path, such as a directory, is not owned.
	Files []string `json:"files,omitempty"`

	// SetAside describes the configurations of others that the agent renamed, so that no
	// program reads them: the absolute path of a directory with * and the suffix that it
	// appended, such as "/etc/cni/net.d/*.cilium_bak"; a dot and a number may follow the
	// suffix. They get their original name back, unless it is taken, a plugin of theirs is
	// missing, or they would be read before another network that works. If several have the
	// same original name, the one with the highest number gets it, and the others are
	// reported in [Inventory.Left]. Those whose original name is in Files are removed
	// instead.
	SetAside []string `json:"setAside,omitempty" yaml:"setAside"`

	// StateDirs are absolute paths of directories that are owned with
	// everything in them. A file there is removed as well.
	StateDirs []string `json:"stateDirs,omitempty" yaml:"stateDirs"`

	// PidFiles are absolute paths of files in which a running agent writes its
	// pid, whatever pid namespace it is in, or on which it holds a lock, by
	// flock(2) or fcntl(2).
	PidFiles []string `json:"pidFiles,omitempty" yaml:"pidFiles"`

	// Executables are the names of the files that a running agent executes, such as
	// "cilium-agent", without a directory. If empty, the number in a pid file is no
	// evidence of a running agent; without PidFiles, a process of root's in the node's
	// network namespace that executes one of them is.
	Executables []string `json:"executables,omitempty"`

	// Sockets are absolute paths of Unix sockets (SOCK_STREAM) on which only a running
	// agent listens.
	Sockets []string `json:"sockets,omitempty"`
}

// LinkRule describes network links. Every field that is set has to match; the
// zero value describes no link. Unlike paths, links that a ledger has recorded are not
// kept: a rule must not match those that the agent's plan makes.
type LinkRule struct {
	// Name is a regular expression for the whole name. An expression that matches lo, or
	// a name that kernels and udev give to network cards, is an error.
	Name string `json:"name,omitempty"`

	// Kind is the kind of link as the kernel calls it, such as "veth".
	Kind string `json:"kind,omitempty"`

	// Programs are full names of owned programs or filters. At least one must be attached
	// to the link: as a tc filter, by tcx, netkit or XDP.
	Programs []string `json:"programs,omitempty"`
}

// owned is an Ownership that was checked and compiled.
type owned struct {
	Ownership
	links  []linkMatcher
	routes []routeMatcher
	rules  []policyMatcher
}

type linkMatcher struct {
	LinkRule
	name *regexp.Regexp
}

// Validate returns an error if the ownership could match property of the node or of
// another agent: a link rule for lo, eth0 or cni0, chains with the prefix KUBE-, a file
// outside the places for agents, an empty name. The error has the field, the thing that
// it would match, its owner, and the source of that fact. [Leftovers.Inventory] and
// [Leftovers.Remove] call it first.
func (o Ownership) Validate() error {
	_, err := o.compile()
	return err
}

// compile checks the ownership, so that an invalid one removes nothing.
func (o Ownership) compile() (*owned, error) {
	out := &owned{Ownership: o}
	var links, routes, rules error
	out.links, links = compiled(o.Links, LinkRule.compile)
	out.routes, routes = compiled(o.Routes, RouteRule.compile)
	out.rules, rules = compiled(o.Rules, PolicyRule.compile)
	err := cmp.Or(
		every(slices.Concat(o.Programs, o.Filters), validName),
		every(o.Pins, validPinPattern),
		links, routes, rules,
		every(o.NetNS, func(pattern string) error { return validPattern("network namespace", pattern) }),
		every(o.RuleComments, func(pattern string) error { return validPattern("rule comment", pattern) }),
		every(o.XFRM, XFRMRule.validate),
		every(slices.Concat(o.ChainPrefixes, o.IPSetPrefixes), validPrefix),
		every(o.NFTables, NFTable.validate),
		every(o.Mounts, MountRule.validate),
		every(o.Files, func(name string) error { return validPath("file", name) }),
		every(slices.Concat(o.PidFiles, o.Sockets), func(name string) error { return validPath("pid file or socket", name) }),
		every(o.Executables, validExecutable),
		every(o.SetAside, validAside),
		every(o.StateDirs, func(dir string) error { return validDir("state directory", dir) }),
	)
	if err != nil {
		return nil, err
	}
	return out, out.checkProtected()
}

// every returns the first error of a list's elements.
func every[T any](list []T, check func(T) error) error {
	for _, element := range list {
		if err := check(element); err != nil {
			return err
		}
	}
	return nil
}

func compiled[R, M any](rules []R, compile func(R) (M, error)) (list []M, err error) {
	err = every(rules, func(rule R) error {
		m, err := compile(rule)
		list = append(list, m)
		return err
	})
	return list, err
}

// written is a rule as a file of an ownership has it.
func written(rule any) string {
	text, _ := json.Marshal(rule) // texts and numbers
	return string(text)
}

func (r LinkRule) compile() (linkMatcher, error) {
	m := linkMatcher{LinkRule: r}
	if r.Name == "" {
		return m, fmt.Errorf("cleanup: ownership: link rule %s: it needs a name, or it would match links of other owners", written(r))
	}
	if err := every(r.Programs, validName); err != nil {
		return m, fmt.Errorf("link rule %q: %w", r.Name, err)
	}
	name, err := regexp.Compile(`^(?:` + r.Name + `)$`)
	if err != nil {
		return m, fmt.Errorf("cleanup: ownership: link rule %q: %w", r.Name, err)
	}
	m.name = name
	return m, nil
}

func validPinPattern(pattern string) error {
	if pattern == "" || pattern == "." || path.Clean(pattern) != pattern || path.IsAbs(pattern) || pattern == ".." || strings.HasPrefix(pattern, "../") {
		return fmt.Errorf("cleanup: ownership: pin %q: want a clean path below the BPF file system's root", pattern)
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return fmt.Errorf("cleanup: ownership: pin %q: %w", pattern, err)
	}
	if strings.ContainsAny(path.Base(pattern)[:1], `*?[\`) || slices.Contains(sharedPins(), pattern) {
		return fmt.Errorf("cleanup: ownership: pin %q would match pins of other owners: want a name, or a pattern that starts with part of one", pattern)
	}
	if dir := path.Dir(pattern); strings.ContainsAny(dir, `*?[\`) {
		return fmt.Errorf("cleanup: ownership: pin %q: only the last element may have wildcards", pattern)
	}
	return nil
}

// validDir accepts a path that is not clean, since users write directories that way.
func validDir(what, dir string) error {
	switch {
	case dir == "":
		return fmt.Errorf("cleanup: %s: the path is empty", what)
	case !path.IsAbs(dir):
		return fmt.Errorf("cleanup: %s %s: want an absolute path", what, dir)
	case path.Clean(dir) == "/":
		return fmt.Errorf("cleanup: %s %s: refusing to empty the root of the file system", what, dir)
	}
	return nil
}

// ownsPrograms reports whether any program could be owned.
func (o *owned) ownsPrograms() bool { return len(o.Programs)+len(o.Filters)+len(o.Pins) > 0 }

// hasPrefix reports whether name starts with one of prefixes.
func hasPrefix(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// ownsChain reports whether a chain of iptables is owned.
func (o *owned) ownsChain(name string) bool {
	return hasPrefix(name, o.ChainPrefixes) || slices.Contains(o.Exceptions, Exception{kindChain, name})
}

func (o *owned) ownsIPSet(name string) bool {
	return hasPrefix(name, o.IPSetPrefixes) || slices.Contains(o.Exceptions, Exception{kindSet, name})
}

// hasNetfilter reports whether any chain or rule, or any ipset, could be owned.
func (o *owned) hasNetfilter(kind string, names []string) bool {
	return len(names) > 0 || slices.ContainsFunc(o.Exceptions, func(e Exception) bool { return e.Kind == kind })
}

func (o *owned) ownsNFTable(t NFTable) bool { return slices.Contains(o.NFTables, t) }

// ownsLink reports whether a link is owned that carries programs of the given names.
// Loopback is never owned.
func (o *owned) ownsLink(name, kind string, programs []string) bool {
	return name != "lo" && slices.ContainsFunc(o.links, func(m linkMatcher) bool { return m.matches(name, kind, programs) })
}

func (m linkMatcher) matches(name, kind string, programs []string) bool {
	carries := func(program string) bool {
		return isProgram(program, m.Programs) || isFilter(program, name, m.Programs)
	}
	return m.name.MatchString(name) && (m.Kind == "" || m.Kind == kind) && (len(m.Programs) == 0 || slices.ContainsFunc(programs, carries))
}

// nameBytes is how much of a program's name the kernel stores (BPF_OBJ_NAME_LEN).
const nameBytes = 15

// linkMark stands for a link's name in the name of a filter.
const linkMark = "{link}"

// validName refuses a name that nearly anything could have.
func validName(name string) error {
	if strings.Trim(strings.ReplaceAll(name, linkMark, ""), "-_. ") == "" {
		return fmt.Errorf("cleanup: ownership: %q is not the name of a program or a filter", name)
	}
	return nil
}

// isProgram reports whether a program's name, as the kernel reports it, is one of the
// full names.
func isProgram(name string, full []string) bool {
	return name != "" && slices.ContainsFunc(full, func(f string) bool { return name == f[:min(len(f), nameBytes)] })
}

// isFilter reports whether a filter's name is one of names on the given link; a
// block of filters that several links share has no link.
func isFilter(name, link string, names []string) bool {
	return name != "" && slices.ContainsFunc(names, func(n string) bool {
		return name == strings.ReplaceAll(n, linkMark, link) && (link != "" || !strings.Contains(n, linkMark))
	})
}
