// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniconform_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocni "github.com/containerd/go-cni"
	"github.com/containernetworking/cni/libcni"
	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/require"
)

const patience = 20 * time.Second

// containerd does what the CNI part of containerd's CRI plugin does: the same loader, with the
// same options, called at the same events. It reloads when a file is written, renamed or
// removed, and ignores a file's creation and changes of mode.
type containerd struct {
	t       *testing.T
	cni     gocni.CNI
	watcher *fsnotify.Watcher
	done    chan struct{}
	loaded  chan struct{} // receives after each load
	loads   atomic.Int64
	seen    func(fsnotify.Event) // called for each event, unless nil

	mu     sync.Mutex
	status error
	errs   []error // of all loads
}

func startContainerd(t *testing.T, seen func(fsnotify.Event), confDir string, binDirs ...string) *containerd {
	cni, err := gocni.New(gocni.WithMinNetworkCount(2), gocni.WithPluginConfDir(confDir),
		gocni.WithPluginMaxConfNum(1), gocni.WithPluginDir(binDirs))
	require.NoError(t, err)
	watcher, err := fsnotify.NewWatcher()
	require.NoError(t, err)
	require.NoError(t, watcher.Add(confDir))
	c := &containerd{t: t, cni: cni, watcher: watcher, done: make(chan struct{}), loaded: make(chan struct{}, 1), seen: seen}
	c.load()
	go c.loop()
	t.Cleanup(func() {
		watcher.Close()
		<-c.done
	})
	return c
}

func (c *containerd) loop() {
	defer close(c.done)
	for event := range c.watcher.Events {
		if !event.Has(fsnotify.Chmod) && !event.Has(fsnotify.Create) {
			c.load()
		}
		if c.seen != nil {
			c.seen(event)
		}
	}
}

func (c *containerd) load() {
	err := c.cni.Load(gocni.WithLoNetwork, gocni.WithDefaultConf)
	c.mu.Lock()
	c.status = err
	if err != nil {
		c.errs = append(c.errs, err)
	}
	c.mu.Unlock()
	c.loads.Add(1)
	select {
	case c.loaded <- struct{}{}:
	default:
	}
}

// network is the source of the pods' network, as last loaded.
func (c *containerd) network() string {
	if networks := c.cni.GetConfig().Networks; len(networks) > 1 {
		return networks[1].Config.Source
	}
	return ""
}

// await waits until the configuration want is loaded.
func (c *containerd) await(what, want string) {
	c.t.Helper()
	timeout := time.After(patience)
	for {
		got := c.network()
		if got == want {
			return
		}
		select {
		case <-c.loaded:
		case <-timeout:
			c.mu.Lock()
			defer c.mu.Unlock()
			require.Failf(c.t, "not noticed", "%s: it has %q, not %q; %v", what, got, want, c.status)
		}
	}
}

// faults lists the errors of loads except two: no configuration exists, or the first one
// disappeared between listing and reading, which the next load corrects.
func (c *containerd) faults() (faults []error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, err := range c.errs {
		text := err.Error() // go-cni does not wrap it
		if !strings.Contains(text, "no network config found") && !strings.Contains(text, "no such file or directory") {
			faults = append(faults, err)
		}
	}
	return faults
}

// reader is libcni, reading the folder continuously.
type reader struct {
	dir      string
	stop     atomic.Bool
	done     sync.WaitGroup
	reads    atomic.Int64
	vanished atomic.Int64

	mu     sync.Mutex
	known  map[string]bool // complete contents
	never  bool            // a missing configuration is a fault
	faults []error
}

func startReader(t *testing.T, dir string) *reader {
	r := &reader{dir: dir, known: map[string]bool{}}
	r.done.Go(func() {
		for !r.stop.Load() {
			r.fault(r.read())
		}
	})
	t.Cleanup(r.finish)
	return r
}

func (r *reader) finish() {
	r.stop.Store(true)
	r.done.Wait()
}

func (r *reader) fault(err error) {
	if err == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, err)
}

// expect adds content that the folder may hold from now on.
func (r *reader) expect(content string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[content] = true
}

// always sets whether some configuration must exist from now on.
func (r *reader) always(there bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.never = there
}

// read reads the folder as a runtime does: the first file counts.
func (r *reader) read() error {
	r.mu.Lock()
	never := r.never
	r.mu.Unlock()
	files, err := libcni.ConfFiles(r.dir, []string{".conf", ".conflist", ".json"})
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	r.reads.Add(1)
	if len(files) == 0 {
		r.mu.Lock()
		defer r.mu.Unlock()
		if never && r.never {
			return errors.New("there is no configuration")
		}
		return nil
	}
	slices.Sort(files)
	for _, file := range files {
		if err := r.readFile(file); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
	}
	return nil
}

func (r *reader) readFile(file string) error {
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		r.vanished.Add(1)
		return nil
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	known := r.known[string(raw)]
	r.mu.Unlock()
	if !known {
		return fmt.Errorf("torn: %q", raw)
	}
	if filepath.Ext(file) == ".conflist" {
		_, err = libcni.NetworkConfFromBytes(raw)
	} else {
		_, err = libcni.NetworkPluginConfFromBytes(raw)
	}
	return err
}
