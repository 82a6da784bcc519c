// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"errors"
	"io/fs"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// The defaults: the directories that containerd and CRI-O use, and a suffix that
// neither of them loads.
const (
	defaultBinDir  = "/opt/cni/bin"
	defaultConfDir = "/etc/cni/net.d"

	defaultBackupSuffix = ".aside"
)

// Install is a state of a node: these plugins in BinDir, this configuration in
// ConfDir. The zero value installs nothing; [Cilium] returns the installation of
// Cilium's agent.
//
// It is a ledger.Wanter, for a step of a plan, which records and undoes what it changes; a
// program that undoes without such a step gives its ledger the kinds of an [Uninstall].
type Install struct {
	// Plugins contains the plugins to install, as regular files (or symbolic links
	// within it) at its root. If nil, no plugins are installed. If Check and Apply
	// run in another mount namespace, it must have been opened before entering that,
	// by OpenPlugins or embed for example, but not by os.DirFS.
	Plugins fs.FS

	// Names lists those to install. If nil, all are, except names that start with a
	// dot or end as a configuration's does (.conflist, .conf, .json) and, of
	// OpenPlugins, files that are not executable, which Advise names. A missing
	// plugin is an error, unless it is in Optional.
	//
	// If Names is not empty, plugins that the step has installed in these
	// directories and that are no longer in Names or Optional are undone, unless they
	// are still needed on the node (see [Uninstall]). Without Names, none are undone.
	//
	// No configuration is published if loopback is neither installed nor about to
	// be: no configuration names it, but containerd runs it for every pod. This
	// does not apply if Optional names it, or Runtime needs none.
	Names    []string
	Optional []string

	// Replace lists the plugins that are replaced if their file differs; any other is
	// installed only where it is missing. "*" stands for all but loopback, and so does nil.
	Replace []string

	// BinDir is the directory in which plugins are installed. If empty, it is
	// /opt/cni/bin. They are also installed in AlsoBinDirs. With these, a directory
	// that needs a change but is not writable is skipped, as long as another is
	// not: Advise reports that. Plugins are also searched for in the directories of Runtime.
	BinDir      string
	AlsoBinDirs []string

	// Vouched lists plugins that the caller vouches for: the runtime finds them
	// but this process does not, such as in a directory of the node's image that the
	// pod does not mount. They are neither searched for nor run.
	Vouched []string

	// Remedy is added to the texts of [Install.ResolveDirs] and Advise about directories. It
	// should explain how to name other directories, for example with which flags of the
	// program.
	Remedy string

	// Config is the configuration. If nil, none is installed. It is written to
	// ConfDir/ConfName with mode 0600. If ConfDir is empty, it is /etc/cni/net.d; ConfName
	// must be given, but for a plugin in place. If it ends in .conflist,
	// the configuration must be a list; if in .conf or .json, that of a single
	// plugin; without a suffix, it gets the one that fits. A configuration that the step has published under another
	// name is undone once this one exists.
	Config   Config
	ConfDir  string
	ConfName string

	// Exclusive sets the other configurations in ConfDir aside: BackupSuffix (if
	// empty, .aside) is appended to each name, and also a number if that name is
	// taken by a file that we did not make. An undo restores them. Our own
	// configuration under an earlier ConfName is removed. More than 100 such files,
	// or more than 4 MiB, including those set aside before, are an error, and
	// nothing is changed.
	Exclusive    bool
	BackupSuffix string

	// Needs lists files that the configuration needs, such as a kubeconfig: it is published
	// after them, and they stay as long as it does, or the agent's plugins, which a runtime
	// still calls to delete a sandbox.
	Needs []string

	// Runtime is what the node's container runtime says of itself, as cri.Endpoint.CNI
	// returns it, and RuntimeErr why it does not. With one of them, empty directories become the
	// runtime's ([Install.ResolveDirs]), a step also undoes its files in other directories, once
	// everything is installed in these, and Advise says whether the runtime uses others.
	Runtime struct {
		PluginDirs []string // in its order
		ConfDir    string
		CRIO       struct {
			DefaultNetwork string // it uses no other network
			StaysReady     bool
		}
		OwnLoopback bool // it brings up the loopback device of pods itself, without a plugin
	}
	RuntimeErr error

	// Undo says what an undoing keeps: the kinds of the step's objects come with it, and a
	// ledger needs no others. Its ConfDir, if empty, is that of i.
	Undo Uninstall

	chosen bool // at least one of the directories was
}

// Check lists the changes that Apply would make. A plugin that Apply would install
// counts as present. If the configuration differs, the other plugins that it names
// are run to ask for the versions that they support. In a plan's run, Advise names
// those that do not answer; only the agent's own, and those that i installs, must.
func (i Install) Check(ctx context.Context) ([]string, error) { return ledger.Check(ctx, i) }

// Apply installs without a record: for use alone. Missing directories are made (mode 0755), the
// plugins installed, and then the configuration published. Everything is written under
// temporary names and validated before the first file is renamed. Leftovers of a killed run
// are removed.
func (i Install) Apply(ctx context.Context) error { return ledger.Apply(ctx, i) }

// Missing names the files that other installers must still bring before i can be
// installed: a plugin that the configuration names, or the configuration that it is
// chained to. It returns "" if there are none. It is made for the Probe of a
// gate.Gate, so that a plan waits while the node is not locked. A check cut short
// by the context counts as missing; the step itself reports any other error of
// Check.
//
// If i is chained and Exclusive, the context should have the ledger's book: that knows files
// set aside under another suffix.
func (i Install) Missing(ctx context.Context) (seen string, err error) {
	_, err = i.Check(ctx)
	if errors.Is(err, ErrPluginMissing) || errors.Is(err, ErrTargetMissing) || err != nil && ctx.Err() != nil {
		return err.Error(), nil
	}
	return "", nil
}
