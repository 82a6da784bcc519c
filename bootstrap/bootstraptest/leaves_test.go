// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/hostpath"
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/configresolve/configdir"
	"github.com/slipway-dev/slipway/internal/snapshot"
	"github.com/slipway-dev/slipway/sysctl"
)

// place is where a leaf acts in a test: a directory, and a kernel in memory.
type place struct {
	t      *testing.T
	dir    string
	kernel *bootstraptest.Kernel
}

func (p place) path(name string) string { return filepath.Join(p.dir, name) }

func (p place) put(name, content string) {
	p.t.Helper()
	path := p.path(name)
	require.NoError(p.t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)))
}

// state describes the whole place: files, values and mounts.
func (p place) state() map[string]string {
	s := snapshot.Snapshot{}
	require.NoError(p.t, s.Files(p.dir))
	for key, value := range p.kernel.Values() {
		s[key] = value
	}
	for object := range s {
		if path, ok := strings.CutPrefix(object, "file "); ok {
			s["mounts on "+path] = strings.Join(p.kernel.Mounts(path), " ")
		}
	}
	return s
}

// refuse makes the kernel call op fail if its subject ends with object.
func (p place) refuse(op, object string) (string, func()) {
	p.kernel.Fail = func(o, path string) error {
		if o == op && strings.HasSuffix(path, object) {
			return syscall.EIO
		}
		return nil
	}
	return object, func() { p.kernel.Fail = nil }
}

// inTheWay puts a foreign object at name.
func (p place) inTheWay(name string) (string, func()) {
	require.NoError(p.t, os.Mkdir(p.path(name), 0o755))
	return p.path(name), func() { require.NoError(p.t, os.Remove(p.path(name))) }
}

// The node shows effects that a leaf's answers do not: earlier objects are restored, objects of
// others stay, and a failure names its object.
func TestTheLeavesKeepTheContractWhereOnlyTheNodeShowsIt(t *testing.T) {
	config, err := configresolve.Resolve(t.Context(), configresolve.Static{Name: "test", Values: map[string]string{"mtu": "1450"}})
	require.NoError(t, err)
	for name, leaf := range map[string]struct {
		prepare func(p place)
		action  func(p place) bootstrap.Action
		handler func(p place) journal.Handler
		broken  func(p place) (string, func())
	}{
		"hostpath": {
			handler: func(p place) journal.Handler { return hostpath.Handler{} },
			action: func(p place) bootstrap.Action {
				return hostpath.Paths{List: []hostpath.Path{
					{Path: p.path("run/state"), Type: hostpath.DirectoryOrCreate}, {Path: p.path("run/lock"), Type: hostpath.FileOrCreate},
				}}
			},
			prepare: func(p place) { p.put("run/theirs", "") },
			broken:  func(p place) (string, func()) { return p.inTheWay("run/lock") },
		},
		"hostpath content": {
			handler: func(p place) journal.Handler { return hostpath.Handler{} },
			action: func(p place) bootstrap.Action {
				return hostpath.Content{Path: p.path("run/acme/conf"), Bytes: []byte("ours"), Parents: true}
			},
			prepare: func(p place) { p.put("run/acme/conf", "theirs") },
			broken: func(p place) (string, func()) {
				path := p.path("run/acme/conf")
				require.NoError(p.t, errors.Join(os.Rename(path, p.path("away")), os.Mkdir(path, 0o755)))
				return path, func() { require.NoError(p.t, errors.Join(os.Remove(path), os.Rename(p.path("away"), path))) }
			},
		},
		"bpffs": {
			handler: func(p place) journal.Handler { return bpffs.Handler{Kernel: p.kernel} },
			action: func(p place) bootstrap.Action {
				return bpffs.Mount{Path: p.path("sys/bpf"), Kernel: p.kernel}
			},
			broken: func(p place) (string, func()) { return p.refuse("mount", "sys/bpf") },
		},
		"cgroup": {
			handler: func(p place) journal.Handler { return cgroup.Handler{Kernel: p.kernel} },
			action: func(p place) bootstrap.Action {
				return cgroup.Mount{Path: p.path("run/cgroup"), Kernel: p.kernel}
			},
			broken: func(p place) (string, func()) { return p.refuse("mount", "run/cgroup") },
		},
		"sysctl drop-in": {
			handler: func(p place) journal.Handler { return sysctl.Handler{Kernel: sysctl.Kernel{Files: p.kernel}} },
			prepare: func(p place) {
				p.put("sysctl.d/90-acme.conf", "# theirs\n")
				p.kernel.PutValue("net.ipv4.conf.all.rp_filter", "2")
			},
			action: func(p place) bootstrap.Action {
				return sysctl.DropIn{
					Dir: p.path("sysctl.d"), Name: "90-acme.conf", Kernel: sysctl.Kernel{Files: p.kernel},
					Settings: []sysctl.Setting{{Key: "net.ipv4.conf.all.rp_filter", Value: "0"}},
				}
			},
			broken: func(p place) (string, func()) {
				_, mend := p.refuse("write", "ipv4/conf/all/rp_filter")
				return "net.ipv4.conf.all.rp_filter", mend
			},
		},
		"sysctl settings": {
			handler: func(p place) journal.Handler { return sysctl.Handler{Kernel: sysctl.Kernel{Files: p.kernel}} },
			action: func(p place) bootstrap.Action {
				return sysctl.Settings{Values: sysctl.Forwarding(), Kernel: sysctl.Kernel{Files: p.kernel}}
			},
			broken: func(p place) (string, func()) {
				_, mend := p.refuse("write", "ipv6/conf/all/forwarding") // after other values were set
				return "net.ipv6.conf.all.forwarding", mend
			},
		},
		"cniinstall": {
			handler: func(p place) journal.Handler { return cniinstall.Handler{ConfDir: p.path("net.d")} },
			prepare: func(p place) {
				p.put("bin/acme-cni", "theirs")
				p.put("net.d/10-other.conflist", `{"cniVersion":"1.0.0","name":"other","plugins":[{"type":"acme-cni"}]}`)
			},
			action: func(p place) bootstrap.Action {
				return cniinstall.Install{
					Plugins: fstest.MapFS{"acme-cni": {Data: []byte("#!/bin/sh\necho '{\"cniVersion\":\"1.0.0\",\"supportedVersions\":[\"1.0.0\"]}'\n")}},
					BinDir:  p.path("bin"), ConfDir: p.path("net.d"), ConfName: "05-acme.conflist", Exclusive: true, Optional: []string{"loopback"},
					Config: cniinstall.Whole(`{"cniVersion":"1.0.0","name":"acme","plugins":[{"type":"acme-cni"}]}`),
				}
			},
			broken: func(p place) (string, func()) { return p.inTheWay("net.d/05-acme.conflist") },
		},
		"configdir": {
			handler: func(p place) journal.Handler { return configdir.Handler{} },
			prepare: func(p place) {
				require.NoError(p.t, os.MkdirAll(p.path("config/lost+found"), 0o700)) // as on a volume
			},
			action: func(p place) bootstrap.Action {
				return configdir.Writer{Path: p.path("config"), Config: config}
			},
			broken: func(p place) (string, func()) {
				require.NoError(p.t, os.Rename(p.path("config"), p.path("away")))
				p.put("config", "a file")
				return p.path("config"), func() {
					require.NoError(p.t, errors.Join(os.Remove(p.path("config")), os.Rename(p.path("away"), p.path("config"))))
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := place{t, t.TempDir(), bootstraptest.NewKernel("eth0")}
			if leaf.prepare != nil {
				leaf.prepare(p)
			}
			bootstraptest.Conformance{
				Action:   func() bootstrap.Action { return leaf.action(p) },
				Handlers: []journal.Handler{leaf.handler(p)},
				State:    p.state,
				Others:   func() bootstrap.Action { return leaf.action(p) },
				Break:    func() (string, func()) { return leaf.broken(p) },
			}.Test(t)
		})
	}
}
