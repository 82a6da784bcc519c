// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/filemode"
	"github.com/slipway-dev/slipway/internal/input"
	"github.com/slipway-dev/slipway/internal/mountinfo"
)

const (
	dirMode  = 0o755
	confMode = 0o600

	// renderedMark is the Identity of a configuration that is wanted because another one is.
	renderedMark = "rendered"
)

// job is an Install with the state found on the node.
type job struct {
	Install
	files   recorded
	kinds   struct{ plugin, conf, aside, inPlace *ledger.Kind }
	plugins []ledger.Want
	file    string            // the name of the configuration's file
	raw     []byte            // the configuration
	net     *network          // nil: none
	asides  []aside           // in the order in which they go
	staged  map[string]string // plugin that is just being tried: its temporary path
	asked   []string          // the plugins that were asked for their versions
}

// isPresent reports whether an existing plugin will do. A link that leads nowhere, as this
// process sees it, is replaced.
func isPresent(plugin ledger.Want) bool {
	_, err := os.Stat(plugin.Object)
	return plugin.Loose && err == nil
}

// Wants lists the files, the configuration last, and the files that it replaces after that.
// An error in the request or the configuration is returned before anything is touched.
func (i Install) Wants(ctx context.Context) (wants ledger.Wants, err error) {
	i, err = i.ResolveDirs(ctx)
	var j *job
	if err == nil {
		j, err = i.survey(ctx)
	}
	if err == nil {
		wants, err = j.wants(ctx)
	}
	wants.Kinds, wants.Watch = i.undo().Kinds(), i.watch(ctx)
	return wants, err
}

func (i Install) undo() Uninstall {
	u := i.Undo
	u.ConfDir = cmp.Or(u.ConfDir, i.ConfDir)
	return u
}

// watch lists the configurations that ours depends on, and their directory, for those to come.
func (i Install) watch(ctx context.Context) (paths []string) {
	if !i.Exclusive && isFixed(i.Config) {
		return nil
	}
	i.ConfDir = cmp.Or(i.ConfDir, defaultConfDir)
	names, _ := i.directory(recorded{}).others(ctx) // what cannot be listed is an error of the survey
	for _, name := range names {
		paths = append(paths, filepath.Join(i.ConfDir, name))
	}
	return append(paths, i.ConfDir+"/")
}

func (j *job) wants(ctx context.Context) (wants ledger.Wants, err error) {
	if wants.List, err = j.dirWants(); err != nil {
		return wants, err
	}
	wants.List = append(wants.List, j.plugins...)
	if c, ok := j.inPlace(); ok {
		plugin, own, err := c.plugin()
		if err != nil {
			return wants, err
		}
		wants.List = append(wants.List, ledger.Want{
			Kind: j.kinds.inPlace, Object: entryObject(own, j.ConfDir), To: entryState(plugin, j.file), Ready: j.ready, Needs: j.needs(), OwnCopy: true,
		})
	} else if j.net != nil {
		wants.List = append(wants.List, j.confWant())
	}
	for _, a := range j.asides {
		wants.List = append(wants.List, a.wants...)
	}
	wants.AtOnce, wants.Complete, wants.Rival = true, j.isFormer, func(o []ledger.Record) string { return j.rival(ctx, o) }
	return wants, nil
}

// survey reads the node and changes nothing.
func (i Install) survey(ctx context.Context) (*job, error) {
	i, err := i.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := i.checkExclusive(); err != nil {
		return nil, err
	}
	j := &job{Install: i}
	if j.files, err = readRecorded(ctx); err != nil {
		return nil, err
	}
	j.setKinds()
	if err := j.render(ctx); err != nil {
		return nil, err
	}
	if j.plugins, err = j.pluginWants(ctx); err != nil {
		return nil, err
	}
	return j, j.findAsides(ctx)
}

// setKinds makes the kinds of this installation, which differ from others' in what they try
// and say.
func (j *job) setKinds() {
	kinds := j.undo().Kinds()
	j.kinds.plugin, j.kinds.conf = kinds[0], kinds[1]
	if c, ok := j.inPlace(); ok {
		j.kinds.inPlace = j.entryKind(c)
	}
	j.kinds.plugin.Stage, j.kinds.plugin.Permission = j.stagePlugin, j.mayInstall
	j.kinds.conf.Stage, j.kinds.conf.Permission = j.stageConf, j.mayInstall
	set := *kinds[1]
	set.Stage, set.Read, set.Write, set.Permission, set.Describe = nil, readWhole, j.moveAside, mayWriteIn, j.describeAside
	set.Contents = func(context.Context, string, ledger.State, ledger.State) (before, after map[string]ledger.State, err error) {
		return nil, nil, nil // they stay, under another name
	}
	j.kinds.aside = &set
}

// mayInstall also needs a directory in which a plugin can be run, if that will be asked for its
// versions.
func (j *job) mayInstall(ctx context.Context, path string) error {
	err := writable(filepath.Dir(path))
	if err == nil {
		err = ledger.File().Permission(ctx, path)
	}
	if err == nil && j.names(filepath.Base(path)) {
		err = usable(filepath.Dir(path))
	}
	return err
}

// names reports whether the configuration names the plugin.
func (j *job) names(plugin string) bool { return j.net != nil && slices.Contains(j.net.types, plugin) }

// mayWriteIn returns an error if nothing can be renamed in the directory of path.
func mayWriteIn(_ context.Context, path string) error { return writable(filepath.Dir(path)) }

// dirWants lists the missing directories of the files.
func (j *job) dirWants() (wants []ledger.Want, err error) {
	var dirs []string
	for _, p := range j.plugins {
		dirs = append(dirs, filepath.Dir(p.Object))
	}
	if j.net != nil {
		dirs = append(dirs, j.ConfDir)
	}
	listed := map[string]bool{}
	for _, dir := range dirs {
		missing, err := ledger.DirWants(dir, dirMode)
		if err != nil {
			return nil, hint(err)
		}
		for _, w := range missing {
			if !listed[w.Object] {
				wants = append(wants, w)
			}
			listed[w.Object] = true
		}
	}
	return wants, nil
}

// pluginWants lists the plugins that are to be in each directory.
func (j *job) pluginWants(ctx context.Context) (wants []ledger.Want, err error) {
	names, err := j.pluginNames(ctx)
	if err != nil {
		return nil, err
	}
	dirs := j.openBinDirs(ctx, names)
	var errs []error
	for _, name := range names {
		for _, dir := range dirs {
			w, err := j.pluginWant(dir, name)
			if errs = append(errs, err); w != nil {
				wants = append(wants, *w)
			}
		}
	}
	return wants, errors.Join(errs...)
}

// openBinDirs lists the directories in which plugins are installed, without those that lack some
// and are not writable, as long as there is another.
func (j *job) openBinDirs(ctx context.Context, names []string) []string {
	open := slices.DeleteFunc(j.binDirs(), func(dir string) bool { return writable(dir) != nil && j.lacks(ctx, dir, names) })
	if len(open) == 0 {
		return j.binDirs()
	}
	return open
}

// lacks reports whether a plugin would have to be written in the directory. An error is one of
// any directory.
func (j *job) lacks(ctx context.Context, dir string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		w, err := j.pluginWant(dir, name)
		if err != nil || w == nil {
			return false
		}
		is, err := isAsWanted(ctx, *w)
		return err != nil || !is
	})
}

// pluginWant returns nil for a plugin that is missing but
// optional, or that exists as a link and is not replaced.
func (j *job) pluginWant(dir, name string) (*ledger.Want, error) {
	path := filepath.Join(dir, name)
	keeps := !j.replaces(name)
	size, err := j.sourceSize(name)
	if errors.Is(err, fs.ErrNotExist) && slices.Contains(j.Optional, name) {
		return nil, nil // Advise reports it
	}
	present, errPresent := os.Lstat(path)
	if isLink := errPresent == nil && present.Mode().Type() == fs.ModeSymlink; keeps && isLink {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if err != nil && keeps && errPresent == nil {
		return nil, nil // it exists, and is not needed here
	}
	if err != nil {
		return nil, fmt.Errorf("CNI plugin to install: %w", err)
	}
	w := ledger.FileWant(path, 0o755, nil)
	w.Kind, w.To.Size, w.To.SHA256 = j.kinds.plugin, size, ""
	w.To.Open = func() (io.ReadCloser, error) { return openSteady(j.Plugins, name) }
	w.Loose, w.NoAdopt = keeps, slices.Contains(referencePlugins, name)
	if !w.NoAdopt { // those run without the agent
		for _, path := range j.Needs {
			w.Needs = append(w.Needs, fileID(path))
		}
	}
	return &w, nil
}

// sourceSize looks at a plugin in the source.
func (i Install) sourceSize(name string) (int64, error) {
	if !isFileName(name) {
		return 0, fmt.Errorf("%q is not a file name", name)
	}
	if isConfName(name) { // in the directory, only its name tells its kind
		return 0, fmt.Errorf("%q has the name of a configuration", name)
	}
	info, err := fs.Stat(i.Plugins, name)
	switch {
	case err != nil:
		return 0, err
	case !info.Mode().IsRegular():
		return 0, fmt.Errorf("%s is a %s, not a file", name, filemode.Type(info.Mode()))
	case info.Size() > input.MaxPlugin:
		return 0, input.TooLarge(name, input.MaxPlugin)
	}
	return info.Size(), nil
}

// steady is a file that returns an error at its end if it was changed while it was read.
type steady struct {
	fs.File
	read   int64
	before time.Time
}

func openSteady(source fs.FS, name string) (io.ReadCloser, error) {
	f, err := source.Open(name)
	if err != nil {
		return nil, fmt.Errorf("CNI plugin to install: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &steady{File: f, before: info.ModTime()}, nil
}

func (s *steady) Read(p []byte) (int, error) {
	n, err := s.File.Read(p)
	s.read += int64(n)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	info, errStat := s.Stat()
	if errStat != nil {
		return n, errStat
	}
	if info.Size() != s.read || !info.ModTime().Equal(s.before) {
		return n, errors.New("the source changed while it was being copied")
	}
	return n, err
}

// referencePlugins are those of github.com/containernetworking/plugins, which many
// agents and distributions bring: an existing one has no particular owner.
var referencePlugins = []string{
	"bandwidth", "bridge", "dhcp", "dummy", "firewall", "host-device", "host-local", "ipvlan", "loopback",
	"macvlan", "portmap", "ptp", "sbr", "static", "tap", "tuning", "vlan", "vrf",
}

// render renders the configuration and reads it as a runtime will.
func (j *job) render(ctx context.Context) (err error) {
	if j.Config == nil {
		return nil
	}
	f, t := j.directory(j.files), candidate{}
	c, isChained := j.Config.(Chained)
	if isChained {
		t, j.raw, err = c.render(ctx, f)
	} else {
		j.raw, err = j.Config.renderIn(ctx, f)
	}
	as := t.name
	if j.file = t.file; !c.InPlace {
		j.ConfName = j.named(j.raw)
		j.file, as = j.ConfName, j.ConfName
	}
	if err == nil {
		j.net, err = parseWhole(ctx, f.Directory, as, j.raw)
	}
	if only := j.Runtime.CRIO.DefaultNetwork; err == nil && only != "" && j.net.name != only {
		return j.net.invalid(-1, fmt.Errorf("no pod gets its network %q, since CRI-O's cni_default_network is %q: name that one, or change the setting and restart CRI-O", j.net.name, only))
	}
	return err
}

// inPlace returns the configuration if it is one of others that the plugin is put into.
func (i Install) inPlace() (c Chained, ok bool) {
	c, ok = i.Config.(Chained)
	return c, ok && c.InPlace
}

// entryKind is the kind of the plugin that is put into others' configurations.
func (j *job) entryKind(c Chained) *ledger.Kind {
	k := (&inPlace{config: &c, directory: j.directory}).kind()
	write := k.Write
	k.Write = func(ctx context.Context, object string, to ledger.State) error {
		if !to.IsZero() {
			if err := j.speak(ctx, j.net.types); err != nil {
				return err
			}
		}
		return write(ctx, object, to)
	}
	return k
}

// confWant is the configuration. One that is rendered from others' is never adopted: it is
// as much theirs.
func (j *job) confWant() ledger.Want {
	w := ledger.FileWant(filepath.Join(j.ConfDir, j.ConfName), confMode, j.raw)
	w.To.Open = w.To.Reader // so that it is staged
	w.Kind, w.Ready, w.Needs = j.kinds.conf, j.ready, j.needs()
	if !isFixed(j.Config) {
		w.NoAdopt, w.To.Identity = true, renderedMark
	}
	return w
}

// needs lists what the configuration needs: plugins, some perhaps installed by another step,
// and the caller's files.
func (j *job) needs() (ids []string) {
	add := func(path string) {
		if id := fileID(path); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, p := range j.plugins {
		if j.net.needs(filepath.Base(p.Object)) {
			add(p.Object)
		}
	}
	for _, o := range j.files.files {
		_, mine := j.files.wants(o)
		name, isFound := filepath.Base(o.Object), func(dir string) bool { return sameDir(dir, filepath.Dir(o.Object)) }
		if mine && o.Kind == pluginKind && j.net.needs(name) && slices.ContainsFunc(j.searchDirs(), isFound) {
			add(o.Object)
		}
	}
	for _, path := range j.Needs {
		add(path)
	}
	return ids
}

func fileID(path string) string { return ledger.Want{Kind: ledger.File(), Object: path}.ID() }

// isFormer reports whether the step's object is undone if it is not listed any more: a
// configuration under an earlier name, a plugin that Names no longer has and, if the runtime
// was asked, all that is in others.
func (j *job) isFormer(k *ledger.Kind, path string) bool {
	moved, dir, name := j.isAsked(), filepath.Dir(path), filepath.Base(path)
	switch {
	case k.Name == ledger.Dir().Name: // not one of the directories, nor above
		return moved && !slices.ContainsFunc(append(j.binDirs(), j.ConfDir), func(d string) bool { return mountinfo.Below(d, path) })
	case k.Name == confKind && j.Config != nil:
		if !sameDir(dir, j.ConfDir) {
			return moved
		}
		return j.files.isOwnConf(path) && name != j.ConfName
	case k.Name == inPlaceKind && j.Config != nil:
		return true // or else it is listed
	case k.Name == pluginKind && j.Plugins != nil:
		if len(intersection(dir, j.binDirs())) == 0 {
			return moved
		}
		return len(j.Names) > 0 && !slices.Contains(j.Names, name) && !slices.Contains(j.Optional, name)
	}
	return false
}
