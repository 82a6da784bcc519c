// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"path"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// ErrNoScope is in the error for a zero scope.
var ErrNoScope = errNoScope

// Things describe a part of a node, to test an [Ownership] without root, without Linux, and
// independently of the tools' output. [Ownership.Of] selects the owned ones.
type Things struct {
	Links  []Link
	Routes []Route
	Rules  []Rule

	// Programs are names of BPF programs that are attached to objects other than Links, such as
	// cgroups.
	Programs []string

	// Pins are paths below the root of a BPF file system, as in Ownership.Pins.
	Pins []string

	NetNS    []string // names of network namespaces
	XFRM     []Mark   // of IPsec policies and states
	Chains   []string // names of iptables and ip6tables chains
	Comments []string // of rules in other chains
	NFTables []NFTable
	IPSets   []string // names
	Mounts   []MountRule

	// Files are absolute paths, including those of relevant directories.
	Files []string
}

// Link is a network link.
type Link struct {
	Name string

	// Kind is as in [LinkRule].
	Kind string
}

// The text of Things, formatted like the inventory's.
type (
	Route = route
	Rule  = rule
)

// Of returns the owned things, in order. It applies the rules of [Leftovers.Inventory], as far
// as names allow. On a node three rules go beyond names: a program is also owned because of a
// pinned map, of a route only the hops through owned links are owned, and a BPF file system
// with another owner's pin is left. Of the names that SetAside matches, only those that are in
// Files but for the suffix are owned: the others regain their names. The error is that of
// [Ownership.Validate].
func (o Ownership) Of(things Things) (Things, error) {
	own, err := o.compile()
	if err != nil {
		return Things{}, err
	}
	of := Things{
		Programs: kept(things.Programs, own.ownsProgram),
		Pins:     kept(things.Pins, own.ownsPin),
		NetNS:    kept(things.NetNS, own.ownsNetNS),
		XFRM:     kept(things.XFRM, own.ownsXFRM),
		Chains:   kept(things.Chains, own.ownsChain),
		Comments: kept(things.Comments, own.ownsComment),
		NFTables: kept(things.NFTables, own.ownsNFTable),
		IPSets:   kept(things.IPSets, own.ownsIPSet),
		Mounts:   kept(things.Mounts, func(m MountRule) bool { return slices.Contains(own.Mounts, m) }),
		Files:    kept(things.Files, own.ownsPath),
		Rules:    kept(things.Rules, func(r Rule) bool { return own.ownsRule(r) || own.movedLocal(r) }),
	}
	links := map[string]bool{}
	of.Links = kept(things.Links, func(l Link) bool {
		links[l.Name] = own.ownsLink(l.Name, l.Kind, nil)
		return links[l.Name]
	})
	foreign := func(link string) bool { return !links[link] }
	of.Routes = kept(things.Routes, func(r Route) bool {
		return len(r.Links) > 0 && !slices.ContainsFunc(r.Links, foreign) || own.ownsRoute(r)
	})
	return of, nil
}

func kept[T any](list []T, owned func(T) bool) (out []T) {
	for _, v := range list {
		if owned(v) {
			out = append(out, v)
		}
	}
	return out
}

func (o *owned) ownsProgram(name string) bool { return isProgram(stored(name), o.Programs) }

// stored returns the part of a program's name that the kernel keeps.
func stored(name string) string { return name[:min(len(name), nameBytes)] }

// ownsPin reports whether a path below the root of a BPF file system matches Pins,
// or one of its directories does.
func (o *owned) ownsPin(pin string) bool {
	elements := strings.Split(path.Clean(pin), "/")
	return slices.ContainsFunc(o.Pins, func(pattern string) bool {
		n := strings.Count(pattern, "/") + 1
		if len(elements) < n {
			return false
		}
		match, _ := path.Match(pattern, path.Join(elements[:n]...))
		return match
	})
}

// ownsPath reports whether a file is one of Files, possibly set aside, or lies in StateDirs.
func (o *owned) ownsPath(name string) bool {
	name = inRun(name)
	file := func(name string) bool {
		return slices.ContainsFunc(o.Files, func(file string) bool { return inRun(file) == name })
	}
	return file(name) || slices.ContainsFunc(o.StateDirs, func(dir string) bool { return mountinfo.Below(name, inRun(dir)) }) ||
		slices.ContainsFunc(o.SetAside, func(pattern string) bool {
			a, is := parseAside(path.Base(name), strings.TrimPrefix(path.Base(pattern), "*"))
			return is && inRun(path.Dir(pattern)) == path.Dir(name) && file(path.Join(path.Dir(name), a.name))
		})
}

// Moved returns o with the paths below from below to instead.
func (o Ownership) Moved(from, to string) Ownership {
	from, to = path.Clean(from), path.Clean(to)
	moved := func(list []string) []string {
		list = slices.Clone(list)
		for i, name := range list {
			if rest, below := strings.CutPrefix(name, from); below && (rest == "" || rest[0] == '/') {
				list[i] = to + rest
			}
		}
		return list
	}
	o.Files, o.SetAside = moved(o.Files), moved(o.SetAside)
	o.StateDirs, o.PidFiles, o.Sockets = moved(o.StateDirs), moved(o.PidFiles), moved(o.Sockets)
	o.Mounts = slices.Clone(o.Mounts)
	for i, m := range o.Mounts {
		o.Mounts[i].Path = moved([]string{m.Path})[0]
	}
	return o
}
