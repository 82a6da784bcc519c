// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/slipway-dev/slipway/internal/cniconf"
	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/hosttool"
	"github.com/slipway-dev/slipway/internal/once"
)

// Advise returns remarks for an administrator, one line each, on conditions that
// are no change for Check: the container runtime looks in other directories, or does
// not report them (see [Install.ResolveDirs]); one of several plugin directories is not
// writable; an optional plugin is missing; files among the plugins to install are not
// executable, and left out; users other than root may
// write to a directory whose files a runtime will run, and plugins are not asked for
// their versions because of that; a plugin of others was asked in this run of a plan,
// and did not answer; a file among those searched for a network to chain onto is
// invalid; and runtimes will not use the configuration because another file sorts
// before it, perhaps one so invalid that containerd, which takes the first file, loads
// none at all. In exclusive mode Apply sets such files aside. Advise changes nothing.
func (i Install) Advise(ctx context.Context) ([]string, error) {
	i, err := i.ResolveDirs(ctx)
	if err == nil {
		i, err = i.withDefaults()
	}
	if err != nil {
		return nil, err
	}
	advice := slices.Concat(i.misplaced(), i.lacking(), i.leftOut(ctx), i.shut(), i.shared())
	if i.Config == nil {
		return advice, nil
	}
	files, err := readRecorded(ctx)
	if err != nil {
		return nil, err
	}
	f := i.directory(files)
	f.passedOver = func(text string) { advice = append(advice, text) }
	raw, err := i.Config.renderIn(ctx, f)
	i.ConfName = i.named(raw)
	if err == nil { // Check reports other errors
		advice = append(advice, i.unasked(ctx, raw)...)
	}
	f.own = i.ConfName
	names, err := f.others(ctx)
	for _, name := range names {
		if name >= f.own || i.Exclusive {
			break // what comes before ours, and stays there, is used
		}
		if text := i.advise(ctx, f, name); text != "" {
			advice = append(advice, text)
		}
	}
	return advice, cmp.Or(err, ctx.Err())
}

// shut names the plugin directories that are skipped although files in them differ.
func (i Install) shut() (texts []string) {
	dirs := i.binDirs()
	for _, dir := range dirs {
		if err := writable(dir); err != nil && i.Plugins != nil && len(dirs) > 1 {
			texts = append(texts, fmt.Sprintf("plugins in %s are not updated: it is not writable, and another directory is: %v", dir, err))
		}
	}
	return texts
}

// shared names the directories to which users other than root may write. They cannot
// mislead us, but a runtime runs the programs there as root.
func (i Install) shared() (texts []string) {
	for _, dir := range i.directories() {
		d, err := durable.OpenDir(dir)
		if err != nil {
			continue // it is missing, or Check reports the error
		}
		if why := d.OthersMayWrite(); why != "" {
			texts = append(texts, fmt.Sprintf("users other than root may change the CNI directory %s, whose content runs as root: %s", dir, why))
		}
		_ = d.Close() // nothing was written
	}
	return texts
}

// unasked names the plugins of a configuration that are not run for their versions, or
// were in this run, and did not answer.
func (i Install) unasked(ctx context.Context, raw []byte) (texts []string) {
	n, err := parse(i.ConfName, raw)
	if err != nil {
		return nil
	}
	for _, plugin := range unique(n.types) {
		path, err := find(plugin, i.searchDirs())
		if err != nil || slices.Contains(i.Vouched, plugin) {
			continue
		}
		does, why := "is not run", hosttool.Trust(path)
		if !errors.Is(why, hosttool.ErrUntrusted) {
			does = "does not answer"
			why, _ = once.Do(ctx, unanswered(path), func(context.Context) (error, error) { return nil, errors.ErrUnsupported })
		}
		if why != nil {
			texts = append(texts, fmt.Sprintf("cannot tell whether CNI plugin %s speaks cniVersion %s, since it %s: %v", plugin, n.version, does, why))
		}
	}
	return texts
}

// advise describes the effect of a file that sorts before ours. It has none if the runtime uses
// only the network of another name.
func (i Install) advise(ctx context.Context, f directory, name string) string {
	path := filepath.Join(f.Dir, name)
	raw, err := f.Read(ctx, name)
	var network string
	if err == nil {
		network, err = loads(name, raw)
	}
	missing := i.willLack(ctx, cniconf.Types(name, raw))
	switch only := i.Runtime.CRIO.DefaultNetwork; {
	case only != "" && (err != nil || network != only):
		return ""
	case err != nil:
		return fmt.Sprintf("%s is invalid and sorts before %s: containerd loads no network while it is there, CRI-O passes it over: %v",
			path, f.own, err)
	case len(missing) > 0:
		return fmt.Sprintf("%s sorts before %s: containerd uses its network %q, CRI-O passes it over: %v", path, f.own, network, missing[0])
	}
	return fmt.Sprintf("%s sorts before %s: runtimes use its network %q", path, f.own, network)
}

// willLack returns an error for each plugin that is not on the node, nor about to be.
func (i Install) willLack(ctx context.Context, plugins []string) []error {
	coming, _ := i.pluginNames(ctx) // Check reports the error
	return absent(plugins, i.searchDirs(), append(coming, i.Vouched...))
}
