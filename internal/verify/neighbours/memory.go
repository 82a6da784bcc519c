// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package neighbours

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/internal/fsmount"
)

// memory is a node whose kernel is in memory, and whose files are below a directory. It
// can be reset to an earlier state.
type memory struct {
	scenario Scenario
	root     string
	naive    bool
	kernel   *bootstraptest.Kernel
	boots    int
}

// image is the whole state of such a node.
type image struct {
	files  files
	values map[string]string
	mounts []mounted
	boots  int
}

type mounted struct{ point, fstype, source string }

// newMemory returns a node without agents, whose files are in a new directory in dir. If
// naive is set, its agents do not know about each other.
func newMemory(scenario Scenario, dir string, naive bool) (*memory, error) {
	m := &memory{scenario: scenario, root: filepath.Join(dir, "node"), naive: naive}
	if err := original().write(m.root); err != nil {
		return nil, err
	}
	return m, m.boot()
}

func (m *memory) boot() error {
	m.boots++
	m.kernel = bootstraptest.NewKernel("eth0")
	return onBoot(m.root, func(key, value string) error {
		return m.kernel.WriteFile(strings.ReplaceAll(key, ".", "/"), []byte(value))
	})
}

func (m *memory) observe() (State, error) {
	s := State{}
	for key, value := range m.kernel.Values() {
		if key != "kernel.random.boot_id" {
			s["value "+key] = value
		}
	}
	mounts, err := m.mounts()
	if err != nil {
		return nil, err
	}
	for _, on := range mounts {
		if _, twice := s["mount "+on.point]; twice {
			return nil, fmt.Errorf("%s: two mounts", on.point)
		}
		s["mount "+on.point] = on.fstype
	}
	return s, s.addFiles(m.root)
}

func (m *memory) mounts() (all []mounted, err error) {
	infos, err := fsmount.Mounts(m.kernel)
	for _, i := range infos {
		if below, ok := strings.CutPrefix(i.Point, m.root+"/"); ok {
			all = append(all, mounted{below, i.FSType, i.Source})
		}
	}
	return all, err
}

func (m *memory) records() (files, error) {
	all := files{}
	dirs, err := filepath.Glob(filepath.Join(m.root, filepath.FromSlash(record)) + "*")
	for _, dir := range dirs {
		some := files{}
		err = errors.Join(err, some.read(dir))
		for name, f := range some {
			all[filepath.Join(filepath.Base(dir), name)] = f
		}
	}
	return all, err
}

func (m *memory) reboot() error { return m.boot() }

// run runs op. A killed process does nothing from then on: the rest of its code runs without a
// node.
func (m *memory) run(ctx context.Context, op operation) (o outcome, err error) {
	killed, buried, gone := make(chan struct{}), make(chan struct{}), make(chan struct{})
	points := 0
	s := &site{root: m.root, naive: m.naive, boot: fmt.Sprint("boot-", m.boots), point: func() {
		if points++; points == op.Kill {
			close(killed)
			<-buried
			runtime.Goexit()
		}
	}}
	s.mounts, s.files = &mounter{m.kernel, s.point}, &values{m.kernel, s.point}
	go func() {
		defer close(gone)
		o = s.do(ctx, m.scenario, op)
	}()
	select {
	case <-gone:
		return o, nil
	case <-killed:
	}
	now, err := m.save()
	err = errors.Join(err, os.RemoveAll(m.root))
	close(buried)
	<-gone
	return outcome{Killed: true}, errors.Join(err, m.load(now))
}

func (m *memory) save() (i image, err error) {
	i = image{files: files{}, values: m.kernel.Values(), boots: m.boots}
	i.mounts, err = m.mounts()
	return i, errors.Join(err, i.files.read(m.root))
}

func (m *memory) load(i image) error {
	if err := os.RemoveAll(m.root); err != nil {
		return err
	}
	if err := i.files.write(m.root); err != nil {
		return err
	}
	m.kernel, m.boots = bootstraptest.NewKernel("eth0"), i.boots
	for _, on := range i.mounts {
		if err := m.kernel.PutMount(filepath.Join(m.root, on.point), on.fstype, "source="+on.source); err != nil {
			return err
		}
	}
	for range 3 { // first the values that drag others along, then the dragged ones
		now := m.kernel.Values()
		for _, key := range slices.Sorted(maps.Keys(i.values)) {
			if now[key] != i.values[key] {
				m.kernel.PutValue(key, i.values[key])
			}
		}
	}
	if !maps.Equal(m.kernel.Values(), i.values) {
		return errors.New("the kernel cannot be reset")
	}
	return nil
}

// mounter mounts in a process that may be killed.
type mounter struct {
	*bootstraptest.Kernel
	point func()
}

func (m *mounter) Mount(path, fstype, options string, before func(root string) error) error {
	err := m.Kernel.Mount(path, fstype, options, func(root string) error {
		if err := before(root); err != nil {
			return err
		}
		m.point()
		return nil
	})
	if err == nil {
		m.point()
	}
	return err
}

func (m *mounter) Unmount(path string) error {
	m.point()
	err := m.Kernel.Unmount(path)
	m.point()
	return err
}

// values writes values in a process that may be killed.
type values struct {
	*bootstraptest.Kernel
	point func()
}

func (v *values) WriteFile(name string, value []byte) error {
	v.point()
	err := v.Kernel.WriteFile(name, value)
	v.point()
	return err
}
