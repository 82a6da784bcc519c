// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/durable"
)

// Advise lists what Apply cannot achieve, even though Check finds nothing to
// change: another file overrides this one at the next boot, the kernel takes the
// reverse path filter from another key, a default route would be lost at the next
// boot, systemd may read a file differently, users other than root may write to the
// directory, or Reload needs systemd and there is none. Each item is one line for
// an administrator. Advise changes nothing.
func (d DropIn) Advise(ctx context.Context) ([]string, error) {
	content, err := d.content(ctx)
	if err != nil {
		return nil, err
	}
	all, advice, err := effective(ctx, d.dirs(), d.path(), content)
	errs := []error{err}
	own, err := expand(d.Kernel.files(), d.assignments())
	advice = append(advice, overridden(d.Kernel.files(), own, all)...)
	advice = append(advice, d.shared()...)
	more, rpErr := d.Kernel.adviseRPFilter(own)
	advice = append(advice, more...)
	more, raErr := d.Kernel.adviseRouters(own)
	advice = append(advice, more...)
	if d.Reload != nil {
		if _, err := d.Reload.Reloading(ctx); err != nil {
			advice = append(advice, fmt.Sprintf("values are set directly, without a reload: %v", err))
		}
	}
	return advice, errors.Join(append(errs, err, rpErr, raErr, ctx.Err())...)
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
// change, because the kernel takes the reverse path filter from another key.
func (s Settings) Advise(ctx context.Context) ([]string, error) {
	own, err := expand(s.Kernel.files(), assignments(s.Values))
	advice, rpErr := s.Kernel.adviseRPFilter(own)
	return advice, errors.Join(err, rpErr, ctx.Err())
}

// overridden lists our values that systemd will not set because of other files.
func overridden(f Files, own []target, all []assignment) []string {
	final := map[string]target{}
	targets, _ := expand(f, all) // [effective] has reported the errors of other files
	for _, t := range targets {
		final[t.path] = t
	}
	excluded := map[Key]assignment{}
	for _, a := range all {
		if a.Exclude {
			excluded[a.Key] = a
		}
	}
	var causes notes
	for _, t := range own {
		won, set := final[t.path]
		off, isOff := excluded[t.Key]
		switch {
		case set && !sameValue(won.Value, t.Value):
			causes.add(fmt.Sprintf("%s:%d sets ", won.File, won.Line), t.Key,
				fmt.Sprintf(" = %s, which overrides %s at the next boot", oneLine(won.Value), oneLine(t.Value)))
		case isOff:
			causes.add(fmt.Sprintf("%s:%d excludes ", off.File, off.Line), t.Key, " from globs, and so from "+t.File)
		}
	}
	return causes.lines()
}

// notes are lines that each apply to several keys.
type notes []note

type note struct {
	before, after string
	keys          []string
}

func (n *notes) add(before string, key Key, after string) {
	for i := range *n {
		if (*n)[i].before == before && (*n)[i].after == after {
			(*n)[i].keys = append((*n)[i].keys, string(key))
			return
		}
	}
	*n = append(*n, note{before, after, []string{string(key)}})
}

func (n notes) lines() []string {
	var all []string
	for _, note := range n {
		all = append(all, note.before+few(note.keys)+note.after)
	}
	return all
}

// few names the first of many: there may be thousands of links.
func few(names []string) string {
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
		wanted[t.path] = t.Value
	}
	links, err := rpFilterLinks(k.files(), wanted)
	if len(links) == 0 {
		return nil, err
	}
	all, _, err := k.wantedNumber(wanted, rpFilterAll)
	if err != nil {
		return nil, err
	}
	var byAll, byLink []string
	for _, link := range links {
		at := path.Join(rpFilterDir, link, "rp_filter")
		own, isWanted, err := k.wantedNumber(wanted, at)
		_, allWanted := wanted[rpFilterAll]
		switch {
		case err != nil: // the link is gone
		case isWanted && own < all:
			byAll = append(byAll, link)
		case allWanted && own > all:
			byLink = append(byLink, fmt.Sprintf("%s = %d", keyOf(at), own))
		}
	}
	return rpFilterAdvice(all, byAll, byLink), nil
}

func rpFilterAdvice(all int64, byAll, byLink []string) (advice []string) {
	if len(byAll) > 0 {
		advice = append(advice, fmt.Sprintf("lower rp_filter of %s has no effect while %s = %d: the kernel takes the larger",
			few(byAll), keyOf(rpFilterAll), all))
	}
	if len(byLink) > 0 {
		advice = append(advice, fmt.Sprintf("%s = %d does not lower %s: the kernel takes the larger",
			keyOf(rpFilterAll), all, few(byLink)))
	}
	return advice
}

// rpFilterLinks lists the links if wanted has a key of the filter.
func rpFilterLinks(f Files, wanted map[string]string) ([]string, error) {
	concerned := false
	for at := range wanted {
		concerned = concerned || strings.HasPrefix(at, rpFilterDir+"/") && path.Base(at) == "rp_filter"
	}
	if !concerned {
		return nil, nil
	}
	links, err := f.ReadDir(rpFilterDir)
	return slices.DeleteFunc(links, func(l string) bool { return l == "all" || l == "default" }), err
}

// wantedNumber returns the wanted value of the path at or, if there is none, its
// current value.
func (k Kernel) wantedNumber(wanted map[string]string, at string) (n int64, isWanted bool, err error) {
	value, isWanted := wanted[at]
	if !isWanted {
		if value, err = k.read(at); err != nil {
			return 0, false, err
		}
	}
	n, err = number(strings.TrimSpace(value))
	return n, isWanted, err
}

// adviseRouters names the links that get no default route after the next boot,
// because forwarding is then on before the first advertisement arrives.
func (k Kernel) adviseRouters(targets []target) ([]string, error) {
	lister, ok := k.files().(routerLister)
	var changes []Change
	for _, t := range targets {
		changes = append(changes, Change{Key: t.Key, New: t.Value})
	}
	if !ok || !anyForwards6(changes) {
		return nil, nil
	}
	links, err := lister.Routers()
	var advice []string
	for _, link := range links {
		key := keyOf(path.Join("net/ipv6/conf", link, "accept_ra"))
		if !slices.ContainsFunc(targets, func(t target) bool { return t.Key == key && sameValue(t.Value, "2") }) {
			advice = append(advice, fmt.Sprintf("IPv6 forwarding survives the next boot but %s = 2 does not: link %s would take no default route from router advertisements", key, link))
		}
	}
	return advice, err
}
