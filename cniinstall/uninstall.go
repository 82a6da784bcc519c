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
	"strings"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/cniconf"
	"github.com/slipway-dev/slipway/internal/cniresult"
	"github.com/slipway-dev/slipway/internal/input"
)

// The names of the kinds. A configuration that was set aside is an object of its kind that
// shall be absent, and its backup one that shall exist: files that take turns at a path,
// theirs or ours, have one record with one original.
const (
	pluginKind = "cni-binary"
	confKind   = "cni-conf"
)

// Uninstall says what an undoing keeps of what an [Install] has recorded. The zero value is
// for the usual directories.
//
// First the configurations that were set aside come back, so that there is always one, unless
// their plugins are missing. Then our configuration goes, then the plugins, and last the
// directories that were made, if they are empty. A configuration of ours that was changed
// stays, and keeps the plugins and files that it needs. A plugin that was put into another CNI's
// configuration goes from it at once, and new pods do without.
//
// A plugin stays if any remaining configuration names it, as a type, an ipam's or a
// delegate's, whichever program wrote the configuration and whichever step installed the
// plugin. Configurations that come back count too, as do the files in the directory of a list's
// network. In a file that is not JSON each word counts, and an unreadable file may name every
// plugin. The plugin loopback stays as long as there is any configuration. The error of what
// stays matches [ledger.ErrNeeded], and names the configuration. A plugin that existed before
// is restored nevertheless, and one of which the step has installed another copy goes.
type Uninstall struct {
	// ConfDir is a directory to search for configurations, beside those in which some
	// are recorded. If empty, it is /etc/cni/net.d.
	ConfDir string

	// KeepConf keeps the configurations, which belong to the user, with the directories and
	// the plugins that they need.
	KeepConf bool

	// KeepPlugins keeps the plugins and the directories that were made: for an agent that
	// stops and may return. Without the configuration, no new pod gets a network, and
	// containerd deletes no pod either until there is one again.
	KeepPlugins bool

	// Results is the directory in which the runtime's libcni caches the result of
	// each sandbox. As long as a result there names a plugin or network of ours,
	// the plugin and the configuration stay, and stay recorded: the error matches
	// [ErrInUse]. The configuration does not stay if the one that the runtime then
	// finds first is the same step's, or has the same network, and names at least the
	// same plugins. If empty, it is /var/lib/cni/results and
	// /var/lib/cni/cache/results; with KeepPlugins it is ignored.
	Results string

	// Sandboxes lists the IDs of all sandboxes that the container runtime knows, such as
	// cri.Endpoint.SandboxIDs: a result for any other counts for nothing if it is ten
	// minutes old, so that its sandbox is not starting. It is called in the process's own
	// namespaces. If nil, or if it fails, each result counts.
	Sandboxes func(context.Context) ([]string, error)

	// PluginDirs lists all directories in which the container runtime looks for plugins. A
	// configuration that was set aside stays so, and is recorded no longer, if a plugin
	// of it is in none of them. If empty, each comes back.
	PluginDirs []string

	// Force undoes even files that sandboxes need. Their pods are then stuck until
	// the plugins are back. For a plugin in place whose DEL does nothing it is right: the
	// cached result of every pod names it.
	Force bool
}

// Kinds returns the kinds of CNI files, for a ledger.Ledger.
func (u Uninstall) Kinds() []*ledger.Kind {
	plugin, conf := ledger.File(), ledger.File()
	plugin.Name, plugin.Owns, plugin.Met, plugin.Same, plugin.Keeps = pluginKind, ownsFile(plugin.Owns), metPlugin, samePlugin, u.keepsPlugin
	plugin.Leave = func(context.Context, string, ledger.Claim) bool { return u.KeepPlugins }
	conf.Name, conf.Owns, conf.Read, conf.Write, conf.Keeps, conf.Lost = confKind, ownsFile(conf.Owns), readConf, writeConf, u.keepsConf, u.lostConf
	conf.Leave = func(context.Context, string, ledger.Claim) bool { return u.KeepConf }
	dir := ledger.Dir()
	dir.Leave = u.leavesDir
	inPlace := (&inPlace{}).kind()
	inPlace.Leave = conf.Leave
	return []*ledger.Kind{plugin, conf, dir, inPlace}
}

// leavesDir leaves the directories of steps whose files are kept, and no others.
func (u Uninstall) leavesDir(ctx context.Context, _ string, dir ledger.Claim) bool {
	if !u.KeepConf && !u.KeepPlugins {
		return false
	}
	files, err := readRecorded(ctx)
	own := ledger.Record{Claims: []ledger.Claim{dir}}
	return err != nil || slices.ContainsFunc(files.files, func(o ledger.Record) bool { return shareStep(o, own) })
}

// ownsFile also refuses files in directories of the system.
func ownsFile(owns func(string) error) func(string) error {
	return func(path string) error { return cmp.Or(owns(path), owned(filepath.Dir(path))) }
}

// metPlugin accepts a plugin without its write bit, as in a read-only image, and none with a
// set-user-id bit, of which no state tells.
func metPlugin(now ledger.State, w ledger.Want) bool {
	if now.Mode == 0o555 {
		now.Mode = w.To.Mode
	}
	info, err := os.Lstat(w.Object)
	return now.Equal(w.To) && (err != nil || info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) == 0)
}

// samePlugin tells a plugin from an equal one that a package has put in its place.
func samePlugin(a, b ledger.State) bool {
	inode, modified, known := strings.Cut(a.Identity, " ")
	inodeB, modifiedB, knownB := strings.Cut(b.Identity, " ")
	return a.Equal(b) && (!known || !knownB || inode == inodeB || modified == modifiedB)
}

// keepsPlugin keeps a plugin that configurations or sandboxes need.
func (u Uninstall) keepsPlugin(ctx context.Context, path string, after ledger.StateAfter) (why string, err error) {
	if to, _ := after(plugin(), path); !to.IsZero() {
		return "", nil
	}
	files, err := readRecorded(ctx)
	if err != nil || files.hasCopy(path, after) {
		return "", err
	}
	if err := u.remains(files, after).need(ctx, path); err != nil {
		return kept(err)
	}
	return kept(u.inUse(ctx, path, func(r cniresult.Result) bool { return r.Names(filepath.Base(path)) }))
}

// kept returns err as that of a kind, to which the ledger adds the object.
func kept(err error) (why string, _ error) {
	switch {
	case errors.Is(err, ledger.ErrNeeded):
		return err.Error(), nil
	case err != nil:
		err = fmt.Errorf("kept: %w", err)
	}
	return "", err
}

// hasCopy reports whether a step that has installed the plugin keeps it elsewhere.
func (r recorded) hasCopy(path string, after ledger.StateAfter) bool {
	own, _, _ := r.at(path)
	return slices.ContainsFunc(r.files, func(o ledger.Record) bool {
		if o.Object == path || o.Kind != pluginKind || filepath.Base(o.Object) != filepath.Base(path) || !shareStep(o, own) {
			return false
		}
		_, changes := after(plugin(), o.Object)
		_, err := os.Stat(o.Object)
		return err == nil && !changes
	})
}

// shareStep reports whether one step wants both.
func shareStep(a, b ledger.Record) bool {
	return slices.ContainsFunc(a.Claims, func(c ledger.Claim) bool {
		return slices.ContainsFunc(b.Claims, func(d ledger.Claim) bool { return c.Agent == d.Agent && c.Step == d.Step })
	})
}

// inUse returns an error if sandboxes need the object.
func (u Uninstall) inUse(ctx context.Context, object string, needs func(cniresult.Result) bool) error {
	if u.Force {
		return nil
	}
	return u.cache().InUse(ctx, object, needs)
}

func (u Uninstall) cache() cniresult.Cache {
	return cniresult.Cache{Dirs: cniresult.Dirs(u.Results), Sandboxes: u.Sandboxes}
}

// keepsConf keeps our configuration as long as sandboxes have its network and no other one
// serves them, and a backup beside a file that its owner has written again.
func (u Uninstall) keepsConf(ctx context.Context, path string, after ledger.StateAfter) (why string, err error) {
	if to, _ := after(conf(), path); !to.IsZero() {
		return "", nil
	}
	files, err := readRecorded(ctx)
	if err != nil {
		return "", err
	}
	if !isConfName(path) {
		return files.besides(ctx, path, after), nil
	}
	n, err := parseFile(ctx, path)
	if err != nil || u.KeepPlugins {
		return "", ctx.Err() // other errors in it do not keep it
	}
	next, own, err := u.remains(files, after).successor(ctx, path)
	if err != nil {
		return "", err
	}
	return kept(u.inUse(ctx, path, func(r cniresult.Result) bool {
		serves := next != nil && (own || next.name == n.name) && cniresult.Covers(next.raw, r.Config)
		return r.NetworkName == n.name && !serves
	}))
}

// besides says that another file is in the place to which a backup would return.
func (r recorded) besides(ctx context.Context, backup string, after ledger.StateAfter) string {
	for _, name := range origins(filepath.Base(backup)) {
		path := filepath.Join(filepath.Dir(backup), name)
		o, _, known := r.at(path)
		_, comesBack := after(conf(), path)
		if _, isOriginal := isState(ctx, path, o.Original); known && !comesBack && isThere(path) && !isOriginal {
			return fmt.Sprintf("its owner has written %s again, beside which it is kept", path)
		}
	}
	return ""
}

// lostConf says why a configuration that was set aside stays so, and its backup with it.
func (u Uninstall) lostConf(path string, original ledger.State) string {
	ctx, f, backup := context.Background(), cniconf.Directory{Dir: filepath.Dir(path)}, filepath.Base(path)
	if len(u.PluginDirs) == 0 || original.IsZero() == isConfName(path) || !original.IsZero() && isThere(path) {
		return ""
	}
	name, raw, err := backup, []byte(nil), error(nil)
	if names := origins(backup); len(names) > 0 {
		name = names[0]
		raw, err = f.Read(ctx, backup)
	} else {
		backup, _ = twinOf(ctx, path, original)
		raw, err = contentOf(ctx, path, original)
	}
	if missing := cniconf.Missing(cniconf.Types(name, raw), u.PluginDirs); err == nil && len(missing) > 0 {
		return cniconf.StaysAside(filepath.Join(f.Dir, backup), name, missing)
	}
	return ""
}

func isRegular(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

// isThere reports whether there is something, or could be: what cannot be looked at is not taken
// for missing.
func isThere(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// contentOf reads a configuration in state s, through a link, as a runtime does.
func contentOf(ctx context.Context, path string, s ledger.State) ([]byte, error) {
	if s.SHA256 == "" {
		to := s.Value
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		return input.ReadFile(ctx, to, input.MaxNetwork)
	}
	content, err := s.Reader()
	if err != nil {
		return nil, err
	}
	defer content.Close()
	raw, err := io.ReadAll(io.LimitReader(input.WithContext(ctx, content), input.MaxNetwork+1))
	if err == nil && len(raw) > input.MaxNetwork {
		err = input.TooLarge(path, input.MaxNetwork)
	}
	return raw, err
}

// writeConf moves a configuration to its backup, and back, as the same file. If there is
// none, or its owner has changed it, the content is written.
func writeConf(ctx context.Context, path string, to ledger.State) error {
	switch {
	case to.IsZero() && !isThere(path): // it was moved
		return nil
	case !to.IsZero():
		if from, now := twinOf(ctx, path, to); from != "" {
			return hint(ledger.Rename(path, to, from, now))
		}
	}
	return ledger.File().Write(ctx, path, to)
}

// twinOf finds what would become the file at path if it were renamed: a backup of its, or
// what it is to be a backup of.
func twinOf(ctx context.Context, path string, to ledger.State) (name string, now ledger.State) {
	f, base := cniconf.Directory{Dir: filepath.Dir(path)}, filepath.Base(path)
	names := origins(base)
	if isConfName(path) {
		names, _ = f.List(ctx, func(name string) bool { return slices.Contains(origins(name), base) }) // the write reports the error
	}
	for _, name := range names {
		if now, is := isState(ctx, filepath.Join(f.Dir, name), to); is {
			return name, now
		}
	}
	return "", now
}

// isState reports whether there is a file in state s, as it was read.
func isState(ctx context.Context, path string, s ledger.State) (now ledger.State, is bool) {
	now, err := readConf(ctx, path)
	return now, err == nil && !now.IsZero() && now.Equal(s)
}

// plugin and conf name the kinds for a StateAfter.
func plugin() *ledger.Kind { return &ledger.Kind{Name: pluginKind, Space: ledger.File().Space} }
func conf() *ledger.Kind   { return &ledger.Kind{Name: confKind, Space: ledger.File().Space} }
