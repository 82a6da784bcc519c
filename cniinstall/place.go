// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/durable"
)

// ResolveDirs returns i with the directories that Wants chooses, by Runtime and RuntimeErr, which the
// caller has asked for on its own side, such as in a step's Prepare. It is called where Apply
// will run: in the host's mount namespace.
//
// An empty ConfDir becomes the runtime's, and an empty BinDir the first of its plugin
// directories that is on a file system mounted writable and executable, and is for CNI by its
// name; the other plugin directories are searched too. If, according to the context's ledger,
// the agent has already installed in one of the runtime's directories, that one is kept. If
// the runtime does not report its directories, they remain those in which the agent has
// installed before, or become the defaults; a RuntimeErr with the code cri.several or
// cri.unproven is returned instead. A ConfDir of the runtime's that is not for CNI by its
// name is an error; the directories given in i are not checked for that.
func (i Install) ResolveDirs(ctx context.Context) (Install, error) {
	if !i.isAsked() || i.BinDir != "" && i.ConfDir != "" {
		return i, nil
	}
	known, err := i.installed(ctx)
	if slices.Contains([]string{code.CRISeveral, code.CRIUnproven}, code.Of(i.RuntimeErr)) {
		err = fmt.Errorf("%w%s", i.RuntimeErr, i.remedy())
	}
	if err != nil {
		return i, fmt.Errorf("choose CNI directories: %w", err)
	}
	i.chosen = true
	if i.ConfDir == "" {
		i.ConfDir = cmp.Or(i.Runtime.ConfDir, known.conf, defaultConfDir)
		if i.Runtime.ConfDir != "" && !isForCNI(i.Runtime.ConfDir) {
			return i, code.Errorf(code.CNIDirectoryUnusable, "choose CNI directories: the container runtime reads configurations in %q, which by its name is not for CNI%s", i.Runtime.ConfDir, i.remedy())
		}
	}
	if i.BinDir == "" {
		if i.BinDir, err = binDir(i.Runtime.PluginDirs, known.bin); err != nil {
			return i, fmt.Errorf("choose CNI directories: %w%s", err, i.remedy())
		}
	}
	return i, nil
}

// isAsked reports whether the runtime was asked: Files in other directories than its are undone.
func (i Install) isAsked() bool {
	r := i.Runtime
	return i.RuntimeErr != nil || len(r.PluginDirs) > 0 || r.ConfDir != "" || r.OwnLoopback
}

// installed returns the directories in which the agent has installed last, or "".
func (i Install) installed(ctx context.Context) (last struct{ bin, conf string }, err error) {
	files, err := readRecorded(ctx)
	for _, o := range files.files {
		_, _, mine := files.at(o.Object)
		switch {
		case files.isOwnConf(o.Object):
			last.conf = filepath.Dir(o.Object)
		case mine && o.Kind == pluginKind && !slices.Contains(i.AlsoBinDirs, filepath.Dir(o.Object)):
			last.bin = filepath.Dir(o.Object)
		}
	}
	return last, err
}

// remedy returns the text that follows one about directories.
func (i Install) remedy() string {
	if i.Remedy == "" {
		return ""
	}
	return " (" + i.Remedy + ")"
}

// binDir chooses among dirs, where the runtime looks; last is the directory
// of already installed plugins.
func binDir(dirs []string, last string) (string, error) {
	if len(dirs) == 0 {
		return cmp.Or(last, defaultBinDir), nil
	}
	var errs []error
	for _, dir := range append(intersection(last, dirs), dirs...) {
		err := usable(dir)
		isSystems := slices.Contains([]string{"/", "/usr", "/usr/local", "/root"}, filepath.Dir(dir))
		if !isForCNI(dir) && (filepath.Base(dir) != "bin" || isSystems) {
			err = code.Errorf(code.CNIDirectoryUnusable, "%s is by its name not a directory for CNI plugins", dir)
		}
		if err == nil {
			return dir, nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("no plugin can be installed where the container runtime looks: %w", errors.Join(errs...))
}

// nameOfCNI finds the word cni, or net.d, in a path.
var nameOfCNI = regexp.MustCompile(`(^|[-_./])cni([-_./]|$)|/net\.d(/|$)`)

// isForCNI reports whether the path of a directory that the runtime names contains a
// name for CNI. All known CNI directories do, and no directory of another program that
// would read a file we add, or miss one we set aside. A plugin directory may instead
// be named bin, as those of k3s and Google's nodes: an additional program there
// does nothing until it is called.
//
// The directory's owner does not matter here: kubespray's belong to its user. Like
// every directory, it is reached over no link that other users may change.
func isForCNI(dir string) bool { return nameOfCNI.MatchString(filepath.Clean(dir)) }

// intersection is dir, if it is one of dirs.
func intersection(dir string, dirs []string) []string {
	if dir == "" || !slices.ContainsFunc(dirs, func(d string) bool { return sameDir(d, dir) }) {
		return nil
	}
	return []string{dir}
}

// sameDir reports whether two paths lead to one directory, perhaps by links.
func sameDir(a, b string) bool {
	if a == b {
		return true
	}
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// misplaced lists the directories of i that the runtime does not use, one line for each: files installed there have no effect.
// It warns if the runtime's directories are unknown.
func (i Install) misplaced() (advice []string) {
	r := i.Runtime
	if i.Plugins != nil && len(r.PluginDirs) > 0 && !slices.ContainsFunc(i.binDirs(), func(dir string) bool { return len(intersection(dir, r.PluginDirs)) > 0 }) {
		advice = append(advice, fmt.Sprintf("the container runtime looks for plugins in %q, not in %q%s", r.PluginDirs, i.BinDir, i.remedy()))
	}
	if i.Config != nil && r.ConfDir != "" && !sameDir(r.ConfDir, i.ConfDir) {
		advice = append(advice, fmt.Sprintf("the container runtime reads configurations in %q, not in %q%s", r.ConfDir, i.ConfDir, i.remedy()))
	}
	if i.chosen && i.RuntimeErr != nil {
		advice = append(advice, fmt.Sprintf("no container runtime says where it looks, so %s and %s are assumed: %v", i.BinDir, i.ConfDir, i.RuntimeErr))
	}
	return advice
}

// writable returns an error if no file could be written in the directory, or in one
// made there.
func writable(dir string) error {
	_, err := durable.Writable(dir)
	return notWritable(dir, err)
}

func notWritable(dir string, err error) error {
	if err == nil {
		return nil
	}
	return unusable(dir, "is not writable: %w", hint(err))
}
