// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// MountRule describes a mount that an agent makes.
type MountRule struct {
	// Path is the mount point, an absolute path.
	Path string `json:"path"`

	// Type is the type of the file system as the kernel calls it, such as "cgroup2" or
	// "bpf". A mount of another type on Path is not owned.
	Type string `json:"type"`
}

// NFTable names a table of nftables, as nft(8) does. Both fields must be set.
type NFTable struct {
	// Family is "ip", "ip6", "inet", "arp", "bridge" or "netdev".
	Family string `json:"family"`

	// Name is the whole name. A name that the iptables tools or the node's own firewall
	// give to a table, such as "filter", is an error.
	Name string `json:"name"`
}

func (t NFTable) validate() error {
	switch families := []string{"ip", "ip6", "inet", "arp", "bridge", "netdev"}; {
	case !slices.Contains(families, t.Family):
		return fmt.Errorf("cleanup: ownership: table %q of nftables: family %q is not one of %s", t.Name, t.Family, strings.Join(families, ", "))
	case t.Name == "" || len(t.Name) > nftNameBytes:
		return fmt.Errorf("cleanup: ownership: table %q of nftables: want a name of 1 to %d bytes", t.Name, nftNameBytes)
	}
	return nil
}

func validPrefix(prefix string) error {
	if prefix == "" {
		return errors.New("cleanup: ownership: an empty prefix would own every iptables chain, or every ipset")
	}
	return nil
}

func (m MountRule) validate() error {
	if err := validPath("mount", m.Path); err != nil {
		return err
	}
	if m.Type == "" {
		return fmt.Errorf("cleanup: ownership: mount %s: the type of the file system is missing", m.Path)
	}
	return nil
}

func validExecutable(name string) error {
	if name == "" || path.Base(name) != name {
		return fmt.Errorf("cleanup: ownership: executable %q: want the name of a file", name)
	}
	return nil
}

func validAside(pattern string) error {
	if err := validPath("configurations set aside", pattern); err != nil {
		return err
	}
	if suffix, ok := strings.CutPrefix(path.Base(pattern), "*"); !ok || suffix == "" || strings.ContainsAny(suffix, `*?[\`) {
		return fmt.Errorf("cleanup: ownership: configurations set aside %s: want a directory, a slash, an asterisk and a suffix", pattern)
	}
	return nil
}

func validPath(what, name string) error {
	switch {
	case !path.IsAbs(name):
		return fmt.Errorf("cleanup: ownership: %s %q: want an absolute path", what, name)
	case path.Clean(name) != name:
		return fmt.Errorf("cleanup: ownership: %s %s: want a path without .., empty and trailing elements", what, name)
	case name == "/":
		return fmt.Errorf("cleanup: ownership: %s: the root of the file system cannot be owned", what)
	}
	return nil
}

// aside is the name that a configuration got when it was set aside: the one that
// it had, a suffix, and a number where there was such a name already.
type aside struct {
	dir    string
	base   string
	name   string // that it had
	number int    // -1: none
	suffix string
}

func (a aside) path() string { return filepath.Join(a.dir, a.base) }

func (a aside) original() string { return filepath.Join(a.dir, a.name) }

// parseAside reads a name that is another name and the suffix, perhaps with a dot
// and a number.
func parseAside(base, suffix string) (a aside, ok bool) {
	a = aside{base: base, number: -1, suffix: suffix}
	if a.name, ok = strings.CutSuffix(base, suffix); ok {
		return a, a.name != ""
	}
	dot := max(0, strings.LastIndex(base, "."))
	rest, number := base[:dot], strings.TrimPrefix(base[dot:], ".")
	n, err := strconv.ParseUint(number, 10, 31)
	if err != nil || strconv.FormatUint(n, 10) != number {
		return a, false
	}
	a.number = int(n)
	a.name, ok = strings.CutSuffix(rest, suffix)
	return a, ok && a.name != ""
}
