// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/slipway-dev/slipway/bootstrap/journal"
)

// Defaults of the zero fields: where containerd and CRI-O look, and the name
// that Cilium's agent gives its configuration.
const (
	defaultBinDir   = "/opt/cni/bin"
	defaultConfDir  = "/etc/cni/net.d"
	defaultConfName = "05-cilium.conflist"

	defaultBackupSuffix = ".cilium_bak"
)

// confSuffixes are what runtimes load.
var confSuffixes = []string{".conflist", ".conf", ".json"}

// Install is a state of a node: these plugins in BinDir, this configuration in
// ConfDir. The zero value asks for nothing.
//
// It satisfies bootstrap.Action, and with a Journal it can be reverted.
type Install struct {
	// Plugins holds the plugins to install, as regular files (or symbolic links
	// within it) at its root; nil: none. It is read on the caller's side: for
	// what runs in another mount namespace it must have been opened before, as
	// by os.OpenRoot(dir) and its FS, not by os.DirFS.
	Plugins fs.FS

	// Names says which of them; nil: all but those that start with a dot. It is
	// an error if one is missing, unless it is among Optional (nil: loopback),
	// or Policy leaves it out (zero: Always; for loopback IfMissing).
	Names    []string
	Optional []string
	Policy   map[string]Policy

	// BinDir is where plugins go; zero: /opt/cni/bin. SearchDirs are further
	// folders in which the runtime looks for plugins.
	BinDir     string
	SearchDirs []string

	// Config is the configuration; nil: none. It becomes ConfDir/ConfName with
	// mode 0600; zero: /etc/cni/net.d/05-cilium.conflist. A name ending in
	// .conflist must hold a list, one in .conf or .json a single plugin's.
	Config   Config
	ConfDir  string
	ConfName string

	// Exclusive sets the other configurations in ConfDir aside: each is renamed
	// to its name with BackupSuffix (zero: .cilium_bak), with a number behind it
	// if there is such a file that we did not make. Revert puts them back. Ours
	// under an earlier ConfName is removed.
	Exclusive    bool
	BackupSuffix string

	// Journal is where the prior state is noted before each change, for Revert.
	// Nil: nothing is, and Revert returns an error that matches
	// [errors.ErrUnsupported].
	Journal *journal.Journal

	// Warn is called with what is worth knowing and no error; nil: it is not.
	Warn func(text string)
}

// Check says what Apply would change. A plugin that is to be installed counts
// as present; the others that the configuration names are run for their
// versions if the configuration is to be written.
func (i Install) Check(ctx context.Context) ([]string, error) {
	j, err := i.survey(ctx)
	if err != nil {
		return nil, fmt.Errorf("check CNI: %w", err)
	}
	defer j.close()
	if err := j.speak(ctx, j.early(false)); err != nil {
		return nil, fmt.Errorf("check CNI: %w", err)
	}
	return j.changes(), nil
}

// Apply makes folders that are missing (mode 0755), installs the plugins, then
// publishes the configuration. All that is to be written is written and
// validated before the first file is put in its place. What an earlier run
// left when it was killed is removed.
func (i Install) Apply(ctx context.Context) error {
	j, err := i.survey(ctx)
	if err == nil {
		defer j.close()
		err = j.apply(ctx)
	}
	if err != nil {
		return fmt.Errorf("install CNI: %w", err)
	}
	return nil
}
