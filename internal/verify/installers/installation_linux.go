// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package installers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// Installation holds the objects that an agent's installer leaves on a node. Says, here
// and below, is the source: a file in the agent's repository.
type Installation struct {
	Agent, Release string
	Dirs           []Dir
	Files          []File
	Values         []Value
	Mounts         []Mount
	Aside          Aside
}

// Dir is a directory that is made, with its parents, if it is missing.
type Dir struct {
	Path string
	Mode fs.FileMode
	Says string
}

// File is a file that is written, over any existing one.
type File struct {
	Path    string
	Mode    fs.FileMode
	Content string
	Says    string

	Missing bool // it is written only if it is missing
}

// Value is a kernel value to set.
type Value struct {
	Key, Value string // the key as a path below /proc/sys
	Says       string
}

// Mount is a file system that is mounted if there is none of its type.
type Mount struct {
	Path, Type, Source string
	Says               string
}

// Aside describes what happens to the configurations of others.
type Aside struct {
	Dir, Keep, Suffix string // all but Keep get the suffix; if empty, they stay
	Says              string
}

// Lay makes the installer's objects on the node of the calling thread. A second Lay does the
// installer's work after a restart of its pod.
func (i Installation) Lay() error {
	var errs []error
	for _, d := range i.Dirs {
		errs = append(errs, os.MkdirAll(d.Path, d.Mode))
	}
	for _, m := range i.Mounts {
		errs = append(errs, m.lay())
	}
	for _, f := range i.Files {
		errs = append(errs, f.lay())
	}
	for _, v := range i.Values {
		errs = append(errs, os.WriteFile("/proc/sys/"+v.Key, []byte(v.Value), 0))
	}
	if err := errors.Join(append(errs, i.Aside.lay())...); err != nil {
		return fmt.Errorf("lay out what %s %s leaves: %w", i.Agent, i.Release, err)
	}
	return nil
}

// lay writes the file as installers do: under a temporary name, then renamed.
func (f File) lay() error {
	if _, err := os.Lstat(f.Path); f.Missing && err == nil {
		return nil
	}
	temporary := f.Path + ".tmp"
	return errors.Join(os.WriteFile(temporary, []byte(f.Content), 0o600), os.Chmod(temporary, f.Mode), os.Rename(temporary, f.Path))
}

func (m Mount) lay() error {
	mounts, err := mountinfo.Read()
	if err != nil {
		return err
	}
	for _, there := range mounts {
		if there.Point == m.Path && there.FSType == m.Type {
			return nil
		}
	}
	return unix.Mount(m.Source, m.Path, m.Type, 0, "")
}

func (a Aside) lay() error {
	if a.Suffix == "" {
		return nil
	}
	files, err := os.ReadDir(a.Dir)
	errs := []error{err}
	for _, f := range files {
		name := f.Name()
		if isConf := strings.HasSuffix(name, ".conf") || strings.HasSuffix(name, ".conflist") || strings.HasSuffix(name, ".json"); isConf && name != a.Keep {
			path := filepath.Join(a.Dir, name)
			errs = append(errs, os.Rename(path, path+a.Suffix))
		}
	}
	return errors.Join(errs...)
}

const (
	binDir  = "/opt/cni/bin"
	confDir = "/etc/cni/net.d"
)

// program is a stand-in for a plugin: it reports its versions, and differs between
// releases.
func program(name, release string) string {
	return "#!/bin/sh\necho '{\"cniVersion\":\"1.0.0\",\"supportedVersions\":[\"0.1.0\",\"0.2.0\",\"0.3.0\",\"0.3.1\",\"0.4.0\",\"1.0.0\"]}'\n# " + name + " " + release + "\n"
}

// programs returns plugins in the usual folder.
func programs(release, says string, names ...string) (files []File) {
	for _, name := range names {
		files = append(files, File{Path: filepath.Join(binDir, name), Mode: 0o755, Content: program(name, release), Says: says})
	}
	return files
}

// referenceRelease is the release of the reference plugins of both old and new: they are
// the same, byte for byte.
const referenceRelease = "reference 1.9.1"
