// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// The defaults: the folders where containerd and CRI-O look, and a suffix that
// neither of them loads.
const (
	defaultBinDir  = "/opt/cni/bin"
	defaultConfDir = "/etc/cni/net.d"

	defaultBackupSuffix = ".aside"
)

// confSuffixes are the suffixes of the files that runtimes load.
var confSuffixes = []string{".conflist", ".conf", ".json"}

// Install is a state of a node: these plugins in BinDir, this configuration in
// ConfDir. The zero value installs nothing; [Cilium] returns what Cilium's agent is
// installed with.
//
// It is a bootstrap.Action. Where the context has a journal, what Apply changes is
// recorded there, and [Handler] undoes it.
type Install struct {
	// Plugins contains the plugins to install, as regular files (or symbolic links
	// within it) at its root. If nil, no plugins are installed. If Check and Apply
	// run in another mount namespace, it must have been opened before entering that,
	// by OpenPlugins or embed for example, but not by os.DirFS.
	Plugins fs.FS

	// Names says which of them to install. If nil, all are, except names that start
	// with a dot or end as a configuration's does (.conflist, .conf, .json). A missing
	// plugin is an error, unless it is in Optional or its Policy excludes it. If Policy
	// has none for a plugin, it is DefaultPolicy, but for loopback IfMissing.
	//
	// Where Names lists some, what the context's step has installed in these folders and is
	// neither there nor in Optional any more is undone, unless something on the node needs
	// it (see [Handler]): Advise says what. Without Names, nothing is.
	//
	// No configuration is published where loopback is neither installed nor to be: no
	// configuration names it, and containerd runs it for every pod. That does not hold
	// where Optional names it, or the runtime given to For needs none.
	Names    []string
	Optional []string
	Policy   map[string]Policy

	// DefaultPolicy is that of the plugins that Policy does not name.
	DefaultPolicy Policy

	// As says under which names a plugin of the source is installed, if not its own: a
	// program that is two plugins, as Calico's is calico and calico-ipam, is
	// {"calico": {"calico", "calico-ipam"}}. Names and Optional have the source's name,
	// Policy that under which it is installed.
	As map[string][]string

	// BinDir is where plugins are installed. If empty, it is /opt/cni/bin. They are
	// installed in AlsoBinDirs too. Where there are such, a folder that lacks something
	// and cannot be written to is passed over, as long as another is not: Advise says so.
	// SearchDirs are further folders in which the runtime looks for plugins.
	BinDir      string
	AlsoBinDirs []string
	SearchDirs  []string

	// Elsewhere lists plugins that the caller vouches for: they are where the runtime
	// looks and this process does not, such as in a folder of the node's image that the
	// pod does not mount. They are neither looked for nor run.
	Elsewhere []string

	// Remedy is added to what [Install.For] and Advise say about folders. It should say how
	// to give others, for example by which flags of the program.
	Remedy string

	// Config is the configuration. If nil, none is installed. It is written to
	// ConfDir/ConfName with ConfMode: if zero, 0600; 0644 at most. If ConfDir is empty, it
	// is /etc/cni/net.d; ConfName must be given. If it ends in .conflist, the
	// configuration must be a list; if in .conf or .json, that of a single plugin. What
	// the context's step has published under another name before is undone once this one
	// is there.
	Config   Config
	ConfDir  string
	ConfName string
	ConfMode fs.FileMode

	// Exclusive sets the other configurations in ConfDir aside: BackupSuffix (if
	// empty, .aside) is appended to each name, and a number too if that name is
	// taken by a file that we did not make. An undo restores them. Our own
	// configuration under an earlier ConfName is removed. If there are more than 100 to
	// be set aside, or of more than 4 MiB, what was set aside before included, that is
	// an error, and nothing is changed.
	Exclusive    bool
	BackupSuffix string

	place *place // nil: For was not called
}

// Kinds lists the kinds of entries that Apply makes in the context's journal.
func (Install) Kinds() []string { return Handler{}.Kinds() }

// Namespaces lists those of the host that a plan enters: plugins that are asked for their
// versions run in its network namespace.
func (Install) Namespaces() []string { return []string{"mnt", "net"} }

// Places lists the folders.
func (i Install) Places() map[string]string {
	places := map[string]string{}
	if i.Plugins != nil {
		places[cmp.Or(i.BinDir, defaultBinDir)] = ""
		for _, dir := range i.AlsoBinDirs {
			places[dir] = ""
		}
	}
	if i.Config != nil {
		places[cmp.Or(i.ConfDir, defaultConfDir)] = ""
	}
	return places
}

// Validate says what is wrong with the folders and names of i, and with a configuration
// that builds on nothing else, whatever is on the node.
func (i Install) Validate() error {
	i, err := i.withDefaults()
	if err != nil || !isFixed(i.Config) {
		return err
	}
	raw, err := i.Config.Render(context.Background(), i.ConfDir)
	if err == nil {
		_, err = parse(i.ConfName, raw)
	}
	return err
}

// Check says what Apply would change. A plugin that Apply would install counts as
// present. If the configuration differs, the other plugins that it names are run to
// ask for the versions that they support.
func (i Install) Check(ctx context.Context) ([]string, error) {
	j, err := i.survey(ctx)
	if err != nil {
		return nil, fmt.Errorf("check CNI: %w", err)
	}
	defer j.close()
	if err := j.speak(ctx, j.early(false)); err != nil {
		return nil, fmt.Errorf("check CNI: %w", err)
	}
	goes, err := j.checkFormer(ctx)
	if err != nil {
		return nil, fmt.Errorf("check CNI: %w", err)
	}
	shared, err := j.checkWishes(ctx)
	if err != nil {
		return nil, fmt.Errorf("check CNI: %w", err)
	}
	return slices.Concat(j.changes(), goes, shared), nil
}

// Missing says what others have still to bring before i can be installed: a plugin that
// the configuration names, or the configuration that it is chained to. Empty: nothing. It is
// made for the Probe of a gate.Gate, so that a plan waits while the node is not locked. A
// look that the context has ended counts as missing; any other error of Check is for the
// step to tell.
//
// A gate has no journal. If i is chained and Exclusive, have the Probe call Missing inside
// bootstrap.Plan.Inside: the journal knows what was set aside under another suffix.
func (i Install) Missing(ctx context.Context) (seen string, err error) {
	_, err = i.Check(ctx)
	if errors.Is(err, ErrPluginMissing) || errors.Is(err, ErrTargetMissing) || err != nil && ctx.Err() != nil {
		return err.Error(), nil
	}
	return "", nil
}

// Apply makes missing folders (mode 0755), installs the plugins, and then publishes
// the configuration. Everything is written under temporary names and validated
// before the first file is renamed. What a killed run has left is removed. Last, what the
// step installed before and i no longer has is undone.
func (i Install) Apply(ctx context.Context) error {
	j, err := i.survey(ctx)
	if err == nil {
		defer j.close()
		err = j.apply(ctx)
	}
	if err == nil {
		err = j.undoFormer(ctx)
	}
	if err == nil {
		err = j.wish(ctx)
	}
	if err != nil {
		return fmt.Errorf("install CNI: %w", err)
	}
	return nil
}
