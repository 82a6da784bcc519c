// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kmod

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/hosttool"
	"github.com/slipway-dev/slipway/internal/input"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// root is "" but in tests.
var root string

// trees are where distributions have the modules of their kernels.
var trees = []string{"/lib/modules", "/usr/lib/modules", "/run/booted-system/kernel-modules/lib/modules"}

// kernel is the running one, with what is below its modules' directory once that was
// asked for.
type kernel struct {
	release string
	dir     string // "": not there
	lists   map[string]map[string]bool
}

func running() (*kernel, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return nil, os.NewSyscallError("uname", err)
	}
	k := &kernel{release: unix.ByteSliceToString(name.Release[:]), lists: map[string]map[string]bool{}}
	for _, tree := range trees {
		dir := filepath.Join(root, tree, k.release)
		switch info, err := os.Stat(dir); {
		case err == nil && info.IsDir():
			k.dir = dir
			return k, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR):
			return nil, fmt.Errorf("look for the kernel's modules: %w", err)
		}
	}
	return k, nil
}

// has reports whether a module is built in or loaded. One that could not be loaded
// either is an error.
func (k *kernel) has(ctx context.Context, name string) (bool, error) {
	if active, err := loaded(ctx, name); active || err != nil {
		return active, err
	}
	builtIn, err := k.listed(ctx, "modules.builtin", name)
	if builtIn || err != nil {
		return builtIn, err
	}
	loadable, err := k.listed(ctx, "modules.dep", name)
	switch {
	case loadable || err != nil:
		return false, err
	case k.dir == "":
		return false, fmt.Errorf("kernel module %s: %w, as far as can be seen: it is not loaded, and %s, which lists what is built in and what can be loaded, is not there: mount the host's /lib/modules here, or leave out a module that is built in",
			name, ErrMissing, filepath.Join(trees[0], k.release))
	}
	return false, fmt.Errorf("kernel module %s: %w (%s): install the package with the rest of its modules, such as linux-modules-extra or kernel-modules-extra, or boot a kernel that has it", name, ErrMissing, k.release)
}

// loaded reports whether a module is ready, or built in with something to set. One that
// is still on its way, or leaves, is not: modprobe waits for it.
func loaded(ctx context.Context, name string) (bool, error) {
	dir := filepath.Join(root, "/sys/module", name)
	state, err := input.ReadFile(ctx, filepath.Join(dir, "initstate"), input.MaxModules)
	switch {
	case err == nil:
		return strings.TrimSpace(string(state)) == "live", nil
	case !errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("kernel module %s: %w", name, err)
	}
	_, err = os.Stat(dir)
	return err == nil, nil
}

// listed reports whether one of the kernel's lists has a module. A line starts with the
// module's file, as in kernel/net/netfilter/xt_socket.ko.xz.
func (k *kernel) listed(ctx context.Context, list, name string) (bool, error) {
	if k.dir == "" {
		return false, nil
	}
	if k.lists[list] == nil {
		text, err := input.ReadFile(ctx, filepath.Join(k.dir, list), input.MaxModules)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("list the kernel's modules: %w", err)
		}
		names := map[string]bool{}
		for line := range bytes.Lines(text) {
			file, _, _ := strings.Cut(strings.TrimSpace(string(line)), ":")
			if base, _, ok := strings.Cut(path.Base(file), ".ko"); ok {
				names[strings.ReplaceAll(base, "-", "_")] = true
			}
		}
		k.lists[list] = names
	}
	return k.lists[list][name], nil
}

// mayLoad is an error where no module is loaded any more.
func (k *kernel) mayLoad(ctx context.Context, name string) error {
	text, err := input.ReadFile(ctx, filepath.Join(root, "/proc/sys/kernel/modules_disabled"), input.MaxModules)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("kernel module %s cannot be loaded: this kernel loads no modules, whatever is below %s", name, k.dir)
	case err != nil:
		return fmt.Errorf("kernel module %s: %w", name, err)
	case strings.TrimSpace(string(text)) != "0":
		return fmt.Errorf("kernel module %s cannot be loaded: kernel.modules_disabled is set, until the next boot: have it loaded before that, by a file in /etc/modules-load.d", name)
	}
	return nil
}

// load has the node's modprobe load a module, and looks whether it is there then.
func load(ctx context.Context, name string) error {
	modprobe := hosttool.Find("modprobe")
	if modprobe == nil {
		return fmt.Errorf("load kernel module %s: the node has no modprobe: have it loaded at boot, by a file in /etc/modules-load.d or as the node's system does that", name)
	}
	err := modprobe.Run(ctx, "", nil, "--", name)
	if err == nil {
		var active bool
		if active, err = loaded(ctx, name); err == nil && !active {
			err = errors.New("modprobe has not loaded it: look for an install or blacklist line in modprobe.d")
		}
	}
	if err == nil {
		return nil
	}
	if missing := remedy.Missing(remedy.SysModule); len(missing) > 0 {
		err = remedy.Add(err, "needs "+remedy.Names(missing...)+" in the initial user namespace")
	}
	return fmt.Errorf("load kernel module %s: %w", name, err)
}
