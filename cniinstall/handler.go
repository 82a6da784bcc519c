// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/cniconf"
	"github.com/slipway-dev/slipway/internal/cniresult"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/durable"
)

// Handler undoes the recorded changes of every [Install]. First it restores the
// configurations that were set aside, so that there is always one, unless their plugins
// are missing; an unchanged backup is renamed back. Then it removes our configuration, then the plugins, and
// last the directories that Apply made, if they are empty. Files that are no longer
// as the step left them are not touched, and are reported. If a configuration
// cannot be restored, neither ours nor the plugins are removed. If our
// configuration was changed, neither it nor the plugins that it names are removed,
// and all remain recorded: once the configuration is gone, another revert removes
// them.
//
// A plugin stays if any remaining configuration names it, as a type, an ipam's or a
// delegate's, whichever program wrote the configuration and whichever step
// installed the plugin. Configurations that were set aside and come back count
// too, as do the files in the folder of a list's network. In a file that is
// not JSON each word counts, and an unreadable file may name every plugin. The
// plugin loopback stays as long as there is any configuration. A plugin that stays
// also stays recorded, for a later revert, and the error, which matches
// [journal.ErrNeeded], names the configuration: it is no failure but, in a plan,
// advice. A plugin that existed before is restored nevertheless.
type Handler struct {
	// ConfDir is a folder to search for configurations, beside those in which some
	// are recorded. If empty, it is /etc/cni/net.d.
	ConfDir string

	// KeepConf keeps the configurations, which belong to the user. The directories
	// and the plugins that the configurations name are not removed either.
	KeepConf bool

	// KeepPlugins keeps the plugins and the directories that Apply made, which
	// remain recorded: for an agent that stops and may return. Without the
	// configuration, no new pod gets a network, and containerd deletes no pod
	// either until there is one again.
	KeepPlugins bool

	// Results is the directory in which the runtime's libcni caches the result of
	// each sandbox. As long as a result there names a plugin or network of ours,
	// the plugin and the configuration stay, and stay recorded: the error matches
	// [ErrInUse]. The configuration does not stay if the one that the runtime then
	// finds first, another agent's, has the same network and names at least the
	// same plugins. If empty, it is /var/lib/cni/results and
	// /var/lib/cni/cache/results; with KeepPlugins it is ignored.
	Results string

	// Sandboxes lists the IDs of all sandboxes that the container runtime knows, such as
	// cri.Endpoint.SandboxIDs: a result for any other counts for nothing if it is ten
	// minutes old, so that its sandbox is not starting. It is called in the process's own
	// namespaces. If nil, or if it fails, each result counts.
	Sandboxes func(context.Context) ([]string, error)

	// PluginDirs lists all folders in which the container runtime looks for plugins. A
	// configuration that was set aside stays so, and is recorded no longer, if a plugin
	// of it is in none of them. If empty, each comes back.
	PluginDirs []string

	// Force undoes even files that sandboxes need. Their pods are then stuck until
	// the plugins are back.
	Force bool
}

// Namespaces lists the mount namespace.
func (Handler) Namespaces() []string { return []string{"mnt"} }

// Kinds lists the kinds of entries of cniinstall.
func (Handler) Kinds() []string { return append(files.Kinds(), kindBackup) }

// Owns returns an error if e's object cannot be part of a CNI installation.
func (Handler) Owns(e journal.Entry) error {
	if e.Kind == kindBackup && e.Before.Type != "" {
		return errors.New("a backup replaces no file")
	}
	if err := files.Owns(e); err != nil || e.Kind == kindDir {
		return err
	}
	return owned(filepath.Dir(e.Object))
}

// Look returns how to undo e.
func (h Handler) Look(ctx context.Context, p *journal.Pass, e journal.Entry) (u journal.Undo, err error) {
	switch {
	case h.KeepConf && (e.Kind != kindFile || isConf(e)):
		return u, fmt.Errorf("%s: %w", e.Object, journal.ErrKept)
	case h.KeepPlugins && (e.Kind == kindDir || e.Kind == kindFile && !isConf(e)):
		return u, fmt.Errorf("%s: %w", e.Object, journal.ErrKept)
	case isConf(e):
		u, err = h.lookConf(ctx, p, e)
	case e.Kind == kindBackup:
		u, err = h.lookBackup(ctx, p, e)
	case e.Kind == kindFile:
		u, err = h.lookPlugin(ctx, p, e)
	default:
		u, err = lookDir(ctx, p, e)
	}
	if undo := u.Run; undo != nil {
		u.Run = func(ctx context.Context) error { return needing(e, hint(undo(ctx))) }
	}
	return u, hint(err)
}

// needing adds to err that plugins are kept if a configuration cannot be undone.
func needing(e journal.Entry, err error) error {
	if err == nil || !isConf(e) || len(e.Needs) == 0 || errors.Is(err, journal.ErrChanged) {
		return err
	}
	return fmt.Errorf("%w; plugins are kept while a configuration needs them", err)
}

// lookConf restores a file that was set aside by renaming its backup, so that it is
// the same file again, or, if the backup is gone or was edited, from the stored
// content.
func (h Handler) lookConf(ctx context.Context, p *journal.Pass, e journal.Entry) (journal.Undo, error) {
	u, err := files.Look(ctx, p, e)
	if err == nil && u.Run != nil && !isAside(e) && !h.KeepPlugins {
		if err := h.confInUse(ctx, p, e); err != nil {
			return journal.Undo{}, err
		}
	}
	switch {
	case errors.Is(err, journal.ErrChanged) && !isAside(e):
		return u, held(ctx, p, e, err)
	case err != nil || u.Change == "" || !isAside(e):
		return u, err
	}
	restore := u.Run
	for _, backup := range e.Needs {
		is, err := isBackup(ctx, backup, e)
		if err != nil {
			return journal.Undo{}, err
		}
		if missing := h.missing(ctx, p.Journal(), e); is && len(missing) > 0 {
			why := cniconf.StaysAside(backup, filepath.Base(e.Object), missing)
			return journal.Undo{Change: "leave " + e.Object + " set aside: " + why, Run: func(context.Context) error { return nil }}, nil
		}
		if is {
			u.Removes = []string{backup}
			u.Run = func(ctx context.Context) error { return putBack(ctx, backup, e, restore) }
			break
		}
	}
	return u, nil
}

// missing lists the plugins of a configuration that was set aside that the runtime does not
// find.
func (h Handler) missing(ctx context.Context, j *journal.Journal, e journal.Entry) []string {
	if len(h.PluginDirs) == 0 || !isAside(e) {
		return nil
	}
	raw, err := remains{journal: j}.original(ctx, e)
	if err != nil { // the undo reports it
		return nil
	}
	return cniconf.Missing(cniconf.Types(e.Object, raw), h.PluginDirs)
}

// confInUse returns an error if sandboxes have the network of the configuration to
// remove and no other configuration serves them. Other errors in it do not keep it.
func (h Handler) confInUse(ctx context.Context, p *journal.Pass, conf journal.Entry) error {
	n, err := parseFile(ctx, conf.Object)
	if err != nil {
		return nil
	}
	next, err := successor(ctx, p.Journal(), conf.Object)
	if err != nil {
		return err
	}
	return h.inUse(ctx, conf.Object, func(r cniresult.Result) bool {
		serves := next != nil && next.name == n.name && cniresult.Covers(next.raw, r.Config)
		return r.NetworkName == n.name && !serves
	})
}

// successor returns the configuration with which a runtime deletes pods when the
// one at path has gone: the first in the folder that is not ours, since ours go
// too. It is nil if there is none.
func successor(ctx context.Context, j *journal.Journal, path string) (*network, error) {
	names, err := (cniconf.Folder{Dir: filepath.Dir(path)}).List(ctx, isConfName)
	if err != nil {
		return nil, err
	}
	entries, err := j.Entries()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		next := filepath.Join(filepath.Dir(path), name)
		switch {
		case next == path:
			continue
		case slices.ContainsFunc(entries, func(e journal.Entry) bool { return e.Object == next && isConf(e) && isOurs(e) }):
			return nil, nil
		}
		n, err := parseFile(ctx, next)
		if err != nil {
			return nil, ctx.Err() // a runtime would stop there
		}
		return n, nil
	}
	return nil, nil
}

// inUse returns an error if sandboxes need the object.
func (h Handler) inUse(ctx context.Context, object string, needs func(cniresult.Result) bool) error {
	if h.Force {
		return nil
	}
	return cniresult.Cache{Dirs: cniresult.Dirs(h.Results), Sandboxes: h.Sandboxes}.InUse(ctx, object, needs)
}

// isBackup reports whether the file at path is the original of e's object, in the
// same directory, and nothing is at the object's own path.
func isBackup(ctx context.Context, path string, e journal.Entry) (bool, error) {
	if filepath.Dir(path) != filepath.Dir(e.Object) || isConfName(path) {
		return false, nil
	}
	place, err := journal.Snapshot(ctx, e.Object)
	if err != nil || place.Type != "" {
		return false, err
	}
	now, err := journal.Snapshot(ctx, path)
	return now.Type != "" && now.Same(e.Before), err
}

func putBack(ctx context.Context, backup string, e journal.Entry, restore func(context.Context) error) error {
	is, err := isBackup(ctx, backup, e)
	if err != nil {
		return err
	}
	if !is {
		return restore(ctx)
	}
	d, err := durable.OpenDir(filepath.Dir(backup))
	if err != nil {
		return fmt.Errorf("put back: %w", err)
	}
	defer d.Close()
	err = d.RenameNew(filepath.Base(backup), filepath.Base(e.Object))
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is %w, so it is kept", e.Object, journal.ErrChanged)
	}
	if err != nil {
		return fmt.Errorf("put back: %w", err)
	}
	return nil
}

// lookBackup removes a backup whose original was restored in another way. If
// another file is at the original's path, the backup is not removed, nor is one that stays
// aside.
func (h Handler) lookBackup(ctx context.Context, p *journal.Pass, e journal.Entry) (journal.Undo, error) {
	if p.WillRemove(e.Object) { // it is put back
		return journal.Undo{}, nil
	}
	if original, known, err := originalOf(p.Journal(), e); err != nil || known && len(h.missing(ctx, p.Journal(), original)) > 0 {
		return journal.Undo{}, err
	}
	u, err := files.Look(ctx, p, e)
	if err != nil || len(u.Removes) == 0 {
		return u, err
	}
	if err := placeIsTaken(ctx, p, e); err != nil {
		return journal.Undo{}, err
	}
	remove := u.Run
	u.Run = func(ctx context.Context) error {
		if err := placeIsTaken(ctx, p, e); err != nil {
			return err
		}
		return remove(ctx)
	}
	return u, nil
}

func placeIsTaken(ctx context.Context, p *journal.Pass, backup journal.Entry) error {
	e, known, err := originalOf(p.Journal(), backup)
	if err != nil || !known {
		return err
	}
	now, err := journal.Snapshot(ctx, e.Object)
	if err == nil && !now.Same(e.Before) && !e.MatchesAfter(now) {
		err = told{backup.Object + ", which was set aside, is kept beside it", journal.ErrChanged}
	}
	return err
}

// originalOf returns the entry of the file that was set aside as backup.
func originalOf(j *journal.Journal, backup journal.Entry) (e journal.Entry, known bool, err error) {
	entries, err := j.Entries()
	i := slices.IndexFunc(entries, func(e journal.Entry) bool {
		return e.Step == backup.Step && isConf(e) && slices.Contains(e.Needs, backup.Object)
	})
	if i < 0 {
		return e, false, err
	}
	return entries[i], true, err
}

// lookDir keeps a directory in which a configuration is restored.
func lookDir(ctx context.Context, p *journal.Pass, e journal.Entry) (journal.Undo, error) {
	u, err := files.Look(ctx, p, e)
	if err != nil || u.Change == "" {
		return u, err
	}
	entries, err := p.Journal().Entries()
	if err != nil {
		return journal.Undo{}, err
	}
	for _, o := range entries {
		if o.Step == e.Step && isAside(o) && filepath.Dir(o.Object) == e.Object {
			return journal.Undo{}, fmt.Errorf("directory %s is kept: it will hold %s", e.Object, filepath.Base(o.Object))
		}
	}
	return u, nil
}

// told is an error with its own text.
type told struct {
	text string
	is   error
}

func (t told) Error() string        { return t.text }
func (t told) Is(target error) bool { return errors.Is(t.is, target) }
func (t told) Code() string         { return code.Of(t.is) }

// held keeps a changed configuration of ours recorded as long as it needs recorded
// plugins: without them no pod would start.
func held(ctx context.Context, p *journal.Pass, conf journal.Entry, changed error) error {
	f := cniconf.Folder{Dir: filepath.Dir(conf.Object)}
	raw, err := f.Read(ctx, filepath.Base(conf.Object))
	if err != nil {
		return changed // gone, or no pod could start with it
	}
	if _, err := parseWhole(ctx, f, filepath.Base(conf.Object), raw); err != nil {
		return changed
	}
	entries, err := p.Journal().Entries()
	if err != nil {
		return err
	}
	var plugins []string
	for _, e := range entries {
		if isPlugin(e) && filepath.Base(e.Object) != loopback && f.Needs(ctx, e.Object, conf.Object, raw, nil) != nil {
			plugins = append(plugins, e.Object)
		}
	}
	if len(plugins) == 0 {
		return changed
	}
	return errors.Join(changed, told{
		fmt.Sprintf("%s names installed plugins, which are kept until it is gone and the installation is reverted again: %s",
			conf.Object, strings.Join(plugins, ", ")), journal.ErrKept})
}

// lookPlugin keeps a plugin as long as a configuration or sandbox on the node needs
// it.
func (h Handler) lookPlugin(ctx context.Context, p *journal.Pass, e journal.Entry) (journal.Undo, error) {
	r, err := h.remains(ctx, p.Journal(), p.WillUndo)
	if err != nil {
		return journal.Undo{}, err
	}
	return lookUnless(ctx, p, e, func(ctx context.Context) error { return h.needed(ctx, r, e) })
}

// needed returns an error if a remaining configuration or a sandbox needs the
// plugin.
func (h Handler) needed(ctx context.Context, r remains, plugin journal.Entry) error {
	if plugin.Before.Type == "" { // otherwise the original takes its place
		if err := r.need(ctx, plugin.Object); err != nil {
			return err
		}
	}
	return h.inUse(ctx, plugin.Object, func(c cniresult.Result) bool { return c.Names(filepath.Base(plugin.Object)) })
}

// lookUnless returns how to undo a plugin, which is removed unless needed returns
// an error.
func lookUnless(ctx context.Context, p *journal.Pass, e journal.Entry, needed func(context.Context) error) (journal.Undo, error) {
	if err := needed(ctx); err != nil {
		return journal.Undo{}, err
	}
	u, err := files.Look(ctx, p, e)
	if err != nil || u.Run == nil {
		return u, err
	}
	if err := stillOurs(e); err != nil {
		return journal.Undo{}, err
	}
	undo := u.Run
	u.Run = func(ctx context.Context) error {
		if err := errors.Join(needed(ctx), stillOurs(e)); err != nil {
			return err
		}
		return undo(ctx)
	}
	return u, nil
}

// stillOurs returns an error if the plugin was replaced with an equal file of
// another owner.
func stillOurs(e journal.Entry) error {
	info, err := os.Lstat(e.Object)
	if err == nil && isSuccessor(e, info) {
		return told{e.Object + " is another file with the same content, such as a package's, so it is kept", journal.ErrChanged}
	}
	return nil // undoing reports other errors
}

// parseFile reads the configuration at path.
func parseFile(ctx context.Context, path string) (*network, error) {
	f, name := cniconf.Folder{Dir: filepath.Dir(path)}, filepath.Base(path)
	raw, err := f.Read(ctx, name)
	if err != nil {
		return nil, err
	}
	return parseWhole(ctx, f, name, raw)
}
