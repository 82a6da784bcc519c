// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// referencePlugins are those of github.com/containernetworking/plugins, which many
// agents and distributions bring: an existing one has no particular owner.
var referencePlugins = []string{
	"bandwidth", "bridge", "dhcp", "dummy", "firewall", "host-device", "host-local", "ipvlan", "loopback",
	"macvlan", "portmap", "ptp", "sbr", "static", "tap", "tuning", "vlan", "vrf",
}

// checkWishes lists the files that are shared with other agents, or adopted.
func (j *job) checkWishes(ctx context.Context) ([]string, error) {
	wishes, err := j.wishes(ctx)
	if err != nil {
		return nil, err
	}
	return j.journal.CheckWishes(ctx, wishes...)
}

// wish records these files.
func (j *job) wish(ctx context.Context) error {
	wishes, err := j.wishes(ctx)
	if err != nil {
		return err
	}
	return hint(j.journal.Wish(ctx, wishes...))
}

// wishes returns the files that the step wants, and those that it wants gone.
func (j *job) wishes(ctx context.Context) ([]journal.Wish, error) {
	if j.journal == nil {
		return nil, nil
	}
	var wishes []journal.Wish
	for _, t := range j.targets() {
		w := journal.Wish{Entry: journal.Entry{Kind: kindFile, Object: t.path, After: t.after(), Loose: j.isLoose(t)}, Met: t.need == nothing}
		w.Adoptable, w.Claim = !slices.Contains(referencePlugins, t.plugin), !w.Loose
		if err := j.sum(ctx, &w, t); err != nil {
			return nil, err
		}
		wishes = append(wishes, w)
	}
	for _, a := range j.asides {
		wishes = append(wishes, journal.Wish{Entry: journal.Entry{Kind: kindFile, Object: a.from}})
	}
	there, err := j.satisfied(ctx)
	return append(wishes, there...), err
}

// isLoose reports whether another agent's plugin is accepted too.
func (j *job) isLoose(t *target) bool { return t.plugin != "" && j.policyOf(t.plugin) == IfMissing }

// sum completes a wish by the hash of the content, where another agent wants the file too.
func (j *job) sum(ctx context.Context, w *journal.Wish, t *target) (err error) {
	if j.journal.Alone() {
		return nil
	}
	w.After.SHA256, err = t.hash(ctx)
	return err
}

// satisfied returns the plugins that are installed only if missing, and exist.
func (j *job) satisfied(ctx context.Context) (wishes []journal.Wish, err error) {
	if j.Plugins == nil || j.journal.Alone() {
		return nil, nil
	}
	sources, err := j.pluginNames(ctx)
	if err != nil {
		return nil, err
	}
	for _, source := range sources {
		for _, name := range j.installedAs(source) {
			if j.policyOf(name) != IfMissing {
				continue
			}
			for _, dir := range j.binDirs() {
				path := filepath.Join(dir, name)
				if j.coming(path) || !isThere(path) {
					continue
				}
				e := journal.Entry{Kind: kindFile, Object: path, After: journal.State{Type: "file"}, Loose: true}
				wishes = append(wishes, journal.Wish{Entry: e, Met: true})
			}
		}
	}
	return wishes, nil
}

// coming reports whether this installation puts a plugin at path.
func (j *job) coming(path string) bool {
	return slices.ContainsFunc(j.plugins, func(t *target) bool { return t.path == path })
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
