// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/input"
)

// Advise lists what Apply cannot achieve, even though Check finds nothing to
// change: another file overrides or cancels a line at the next boot, or is read after
// all of sysctl.d, a failure is ignored, the kernel takes the reverse path filter from
// another key, a default route would be lost at the next boot, systemd may read a file
// differently, users other than root may write to the directory, or Reload needs systemd
// and there is none. Each item is one line for an administrator. Advise changes nothing.
func (d DropIn) Advise(ctx context.Context) (advice []string, err error) {
	content, err := d.content(ctx)
	if err != nil {
		return nil, err
	}
	all, err := effective(ctx, d.dirs(), d.path(), content)
	errs := []error{err}
	say := func(more []string, err error) { advice, errs = append(advice, more...), append(errs, err) }
	own, err := expand(d.Kernel.files(), d.lines())
	lines := withPatterns(own, d.lines())
	say(d.Kernel.overridden(lines, all, "at the next boot"), err)
	say(d.readLater(ctx, lines))
	say(append(d.Kernel.ignored(own, writer(d.Reload != "")), d.shared()...), nil)
	say(d.Kernel.adviseRPFilter(own))
	say(d.Kernel.adviseRouters(own))
	if d.Reload != "" {
		if _, err := d.reloader().Reloading(ctx); err != nil {
			say([]string{fmt.Sprintf("values are set directly, without a reload: %v", err)}, nil)
		}
	}
	return advice, errors.Join(append(errs, ctx.Err())...)
}

// shared warns if users other than root may write to the file's directory. They
// cannot mislead us, but systemd applies every file there.
func (d DropIn) shared() []string {
	dir, err := durable.OpenDir(d.dir())
	if err != nil {
		return nil // it is missing, or Check reports the error
	}
	defer dir.Close()
	if why := dir.OthersMayWrite(); why != "" {
		return []string{fmt.Sprintf("users other than root may change the files in %s, which are applied as root: %s", d.dir(), why)}
	}
	return nil
}

// Advise lists the settings that have no effect, even though Check finds nothing to
// change: a failure is ignored, or the kernel takes the reverse path filter from another
// key.
func (s Settings) Advise(ctx context.Context) ([]string, error) {
	own, err := expand(s.Kernel.files(), linesOf("", s.Values))
	advice, rpErr := s.Kernel.adviseRPFilter(own)
	return append(s.Kernel.ignored(own, thisProcess), advice...), errors.Join(err, rpErr, ctx.Err())
}

// withPatterns adds the patterns and exclusions in as to targets: systemd merges lines
// before it expands them.
func withPatterns(targets []target, as []target) []target {
	as, _ = override(as) // its errors have been reported
	for _, a := range as {
		if a.Exclude || isGlob(a.path) {
			targets = append(targets, a)
		}
	}
	return targets
}

// overridden lists our lines and values that are not set because of lines in all, of other
// files too.
func (k Kernel) overridden(own []target, all []target, when string) []string {
	final := map[string]target{}
	targets, _ := expand(k.files(), all) // [effective] has reported the errors of other files
	for _, t := range withPatterns(targets, all) {
		final[t.one()] = t
	}
	var causes notes
	for _, t := range own {
		won, set := final[t.one()]
		by := fmt.Sprintf("%s:%d ", won.File, won.Line)
		switch {
		case !set || won.Exclude && t.Exclude:
		case won.Exclude && t.byGlob:
			causes.add(by+"excludes ", won.Key, " from globs, and so from "+t.File)
		case won.Exclude:
			causes.add(by+"excludes ", won.Key, ", which cancels that line of "+t.File+" "+when)
		case t.Exclude:
			causes.add(by+"sets ", won.Key, ", which cancels that it is excluded "+when)
		case !sameValue(t.path, strings.Join(printed(t.path, won.Value), " "), t.Value):
			causes.add(by+"sets ", won.Key, fmt.Sprintf(" = %s, which overrides %s %s", shown(t.Key, won.Value), shown(t.Key, t.Value), when))
		}
	}
	return causes.lines()
}

// readLater lists what two files set otherwise than own that other programs read after all
// of sysctl.d, unless systemd reads them through a link, as on Debian.
func (d DropIn) readLater(ctx context.Context, own []target) (advice []string, err error) {
	etc := filepath.Dir(append(d.dirs(), d.dir())[0])
	read, _ := input.DropIns(ctx, d.dirs(), "") // [effective] has reported the error
	for _, late := range []struct{ name, reader string }{{"/sysctl.conf", "sysctl --system"}, {"ufw/sysctl.conf", "ufw"}} {
		file := filepath.Join(etc, late.name)
		if slices.ContainsFunc(read, func(link string) bool { to, _ := filepath.EvalSymlinks(link); return to == file }) {
			continue
		}
		content, readErr := input.ReadDropIn(ctx, file, input.MaxSysctl)
		as, parseErr := parse(bytes.NewReader(content), file)
		as = slices.DeleteFunc(as, func(a target) bool { return a.Exclude }) // only systemd has them
		advice = append(advice, d.Kernel.overridden(own, as, "when "+late.reader+" reads it, after all of sysctl.d")...)
		err = errors.Join(err, readErr, parseErr)
	}
	return advice, err
}

// ignored lists the values that differ although no change is due, since they may fail.
func (k Kernel) ignored(own []target, w writer) []string {
	var causes notes
	for _, t := range own {
		now, err := k.look(t.path)
		if k.tolerates(t, now, err, w) && !errors.Is(err, fs.ErrNotExist) {
			causes.add("", t.Key, " is not set to "+shown(t.Key, t.Value)+", and the - before it ignores that")
		}
	}
	return causes.lines()
}

// notes are lines that each apply to several keys.
type notes struct {
	texts []string // without the keys, which stand at the NUL
	keys  map[string][]string
}

func (n *notes) add(before string, key Key, after string) {
	text := before + "\x00" + after
	if n.keys == nil {
		n.keys = map[string][]string{}
	}
	if n.keys[text] == nil {
		n.texts = append(n.texts, text)
	}
	n.keys[text] = append(n.keys[text], string(key))
}

func (n *notes) lines() (all []string) {
	for _, text := range n.texts {
		all = append(all, strings.Replace(text, "\x00", abbreviate(n.keys[text]), 1))
	}
	return all
}

// abbreviate names the first of many: there may be thousands of links.
func abbreviate(names []string) string {
	const most = 3
	if len(names) <= most+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

const rpFilterDir, rpFilterAll = "net/ipv4/conf", "net/ipv4/conf/all/rp_filter"

// adviseRPFilter names the links on which targets do not lower the reverse
// path filter: the kernel takes the larger of conf/all and the link's own
// (networking/ip-sysctl).
func (k Kernel) adviseRPFilter(targets []target) ([]string, error) {
	wanted := map[string]string{}
	for _, t := range targets {
		if strings.HasPrefix(t.path, rpFilterDir+"/") && path.Base(t.path) == "rp_filter" {
			wanted[t.path] = t.Value
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	links, err := k.files().ReadDir(rpFilterDir)
	all, allWanted, allErr := k.wantedNumber(wanted, rpFilterAll)
	var byAll, byLink notes
	for _, link := range links {
		at := path.Join(rpFilterDir, link, "rp_filter")
		own, isWanted, err := k.wantedNumber(wanted, at)
		switch {
		case err != nil || allErr != nil || link == "all" || link == "default": // or the link is gone
		case isWanted && own < all:
			byAll.add("lower rp_filter of ", Key(link), fmt.Sprintf(" has no effect while %s = %d: the kernel takes the larger", keyOf(rpFilterAll), all))
		case allWanted && own > all:
			byLink.add(fmt.Sprintf("%s = %d does not lower ", keyOf(rpFilterAll), all), Key(fmt.Sprintf("%s = %d", keyOf(at), own)), ": the kernel takes the larger")
		}
	}
	return append(byAll.lines(), byLink.lines()...), errors.Join(err, allErr)
}

// wantedNumber returns the wanted value of the path at or, if there is none, its
// current value.
func (k Kernel) wantedNumber(wanted map[string]string, at string) (n int64, isWanted bool, err error) {
	value, isWanted := wanted[at]
	if !isWanted {
		if value, err = k.look(at); err != nil {
			return 0, false, err
		}
	}
	n, err = number(strings.Join(printed(at, value), " "))
	return n, isWanted, err
}

// adviseRouters names the links that get no default route after the next boot,
// because forwarding is then on before the first advertisement arrives.
func (k Kernel) adviseRouters(targets []target) ([]string, error) {
	links, err := k.routers(targets)
	var advice []string
	for _, link := range links {
		key := keyOf(path.Join("net/ipv6/conf", link, "accept_ra"))
		if !slices.ContainsFunc(targets, func(t target) bool { return t.Key == key && sameValue(t.path, "2", t.Value) }) {
			advice = append(advice, fmt.Sprintf("IPv6 forwarding survives the next boot but %s = 2 does not: link %s would take no default route from router advertisements", key, link))
		}
	}
	return advice, err
}
