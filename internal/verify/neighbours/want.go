// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package neighbours

import (
	"fmt"
	"path/filepath"
	"reflect"
	"testing/fstest"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/sysctl"
)

// Want is the wish of a step.
type Want interface {
	// action is the step's action.
	action(s *site) bootstrap.Action
	// objects returns the objects that the node then has, as described by [observe].
	objects() State
	// lasts reports whether an object exists after a reboot too.
	lasts(object string) bool
}

// Values are kernel values.
type Values []sysctl.Setting

func (v Values) action(s *site) bootstrap.Action {
	return sysctl.Settings{Values: v, Kernel: s.sysctl()}
}

func (v Values) objects() State {
	all := State{}
	for _, setting := range v {
		all["value "+string(setting.Key)] = setting.Value
		if key := string(setting.Key); key == forwarding4 || key == forwardingAll {
			for _, along := range []string{forwarding4, forwardingAll, ofLink} { // the kernel changes them too
				all["value "+along] = setting.Value
			}
		}
	}
	return all
}

func (Values) lasts(string) bool { return false }

// Mount is a file system of a type on a path.
type Mount struct{ Path, Type string }

func (m Mount) action(s *site) bootstrap.Action {
	if m.Type == "bpf" {
		return bpffs.Mount{Path: s.path(m.Path), Kernel: s.mounts}
	}
	return cgroup.Mount{Path: s.path(m.Path), Kernel: s.mounts}
}

func (m Mount) objects() State { return State{"mount " + m.Path: m.Type} }

func (Mount) lasts(string) bool { return false }

// Directory is a directory.
type Directory struct{ Path string }

func (d Directory) action(s *site) bootstrap.Action {
	return hostpath.Paths{List: []hostpath.Path{{Path: s.path(d.Path), Type: hostpath.DirectoryOrCreate}}}
}

func (d Directory) objects() State { return State{"dir " + d.Path: "0755"} }

func (Directory) lasts(string) bool { return true }

// EmptyFile is a file that is made if there is none.
type EmptyFile struct{ Path string }

func (f EmptyFile) action(s *site) bootstrap.Action {
	return hostpath.Paths{List: []hostpath.Path{{Path: s.path(f.Path), Type: hostpath.FileOrCreate}}}
}

func (f EmptyFile) objects() State { return State{"file " + f.Path: "0644 "} }

func (EmptyFile) lasts(string) bool { return true }

// File is a file with its content, and its parent directories.
type File struct{ Path, Content string }

func (f File) action(s *site) bootstrap.Action { return &publish{s, s.path(f.Path), []byte(f.Content)} }

func (f File) objects() State {
	return State{"file " + f.Path: "0644 " + f.Content, "dir " + filepath.ToSlash(filepath.Dir(f.Path)): "0755"}
}

func (File) lasts(string) bool { return true }

// DropIn is a file of etc/sysctl.d with one value.
type DropIn struct{ Name, Key, Value string }

func (d DropIn) action(s *site) bootstrap.Action {
	return sysctl.DropIn{
		Dir: s.path(dropIns), Name: d.Name, Kernel: s.sysctl(),
		Settings: []sysctl.Setting{{Key: sysctl.Key(d.Key), Value: d.Value}},
	}
}

func (d DropIn) objects() State {
	return State{"settings " + dropIns + "/" + d.Name: fmt.Sprintf("%s = %s", d.Key, d.Value), "value " + d.Key: d.Value}
}

func (DropIn) lasts(string) bool { return true } // the next boot applies it

// Plugins is an agent's configuration and the plugin that it names, which other agents
// install too.
type Plugins struct {
	Config, Portmap string
	Policy          cniinstall.Policy // the plugin's policy
}

const (
	binDir  = "opt/bin"
	confDir = "etc/net.d"
)

func (p Plugins) portmap() string {
	return "#!/bin/sh\n# " + p.Portmap + "\necho '{\"cniVersion\":\"1.0.0\",\"supportedVersions\":[\"1.0.0\"]}'\n"
}

func (p Plugins) config() string {
	return `{"cniVersion":"1.0.0","name":"` + p.Config + `","plugins":[{"type":"portmap"}]}`
}

func (p Plugins) action(s *site) bootstrap.Action {
	return cniinstall.Install{
		Plugins: fstest.MapFS{"portmap": {Data: []byte(p.portmap())}}, Policy: map[string]cniinstall.Policy{"portmap": p.Policy},
		BinDir: s.path(binDir), ConfDir: s.path(confDir), ConfName: "10-" + p.Config + ".conflist",
		Config: cniinstall.Whole(p.config()), Optional: []string{"loopback"},
	}
}

func (p Plugins) objects() State {
	all := State{"plugin " + binDir + "/portmap": "there", "file " + confDir + "/10-" + p.Config + ".conflist": "0600 " + p.config()}
	if p.Policy == cniinstall.Always {
		all["file "+binDir+"/portmap"] = "0755 " + p.portmap()
	}
	return all
}

func (Plugins) lasts(string) bool { return true }

// objects returns the objects of all steps.
func (v Version) objects() State {
	all := State{}
	for _, w := range v.Steps {
		for object, state := range w.objects() {
			all[object] = state
		}
	}
	return all
}

// common returns the steps with the same wish in both versions: they stay when one
// follows the other.
func (v Version) common(w Version) Version {
	steps := map[string]Want{}
	for name, want := range v.Steps {
		if reflect.DeepEqual(want, w.Steps[name]) {
			steps[name] = want
		}
	}
	return Version{Steps: steps}
}

// lasts reports whether an object exists after a reboot too.
func (v Version) lasts(object string) bool {
	for _, w := range v.Steps {
		if _, is := w.objects()[object]; is && w.lasts(object) {
			return true
		}
	}
	return false
}
