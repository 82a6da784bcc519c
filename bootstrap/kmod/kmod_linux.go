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

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/hosttool"
	"github.com/slipway-dev/slipway/internal/input"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// trees are where distributions keep the modules of their kernels.
var trees = []string{"/lib/modules", "/usr/lib/modules", "/run/booted-system/kernel-modules/lib/modules"}

// kernel is the running one.
type kernel struct {
	root, release string
	lists         map[string]map[string]bool // the modules in modules.builtin, and in modules.dep
	dir           string                     // where these are
}

func running(root string) (*kernel, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return nil, os.NewSyscallError("uname", err)
	}
	return &kernel{root: root, release: unix.ByteSliceToString(name.Release[:])}, nil
}

// has reports whether a module is built in or loaded. One that is neither and not
// loadable is an error.
func (k *kernel) has(ctx context.Context, name string) (bool, error) {
	if active, err := k.loaded(ctx, name); active || err != nil {
		return active, err
	}
	if k.lists == nil {
		if err := k.read(ctx); err != nil {
			return false, fmt.Errorf("list the kernel's modules: %w", err)
		}
	}
	switch {
	case k.lists["modules.builtin"][name]:
		return true, nil
	case k.lists["modules.dep"][name]:
		return false, nil
	case k.dir == "":
		return false, code.Errorf(code.ModuleUndetermined, "kernel module %s: it is not loaded, and cannot tell whether the kernel has it, since its lists of modules are not in %s: "+
			"in a container, enter the host's mount namespace, or mount its /lib/modules; if the kernel's package was upgraded or removed, reboot; leave out built-in modules",
			name, filepath.Join(trees[0], k.release))
	}
	return false, code.Errorf(code.ModuleMissing, "kernel module %s: the kernel does not have this module (%s): install the package with the rest of its modules, such as linux-modules-extra or kernel-modules-extra, or boot a kernel that has it", name, k.release)
}

// loaded reports whether a module is ready, or built in with something to set. One that
// is still being loaded or unloaded is not: modprobe waits for it.
func (k *kernel) loaded(ctx context.Context, name string) (bool, error) {
	dir := filepath.Join(k.root, "/sys/module", name)
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

// read reads the lists of the first tree that has one.
func (k *kernel) read(ctx context.Context) error {
	lists := map[string]map[string]bool{}
	for _, tree := range trees {
		for _, list := range []string{"modules.builtin", "modules.dep"} {
			text, err := input.ReadFile(ctx, filepath.Join(k.root, tree, k.release, list), input.MaxModules)
			switch {
			case err == nil:
				lists[list], k.dir = modules(text), filepath.Join(tree, k.release)
			case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR):
				return err
			}
		}
		if k.dir != "" {
			break
		}
	}
	k.lists = lists
	return nil
}

// modules returns the modules of a list. A line starts with a module's file, as in
// kernel/net/netfilter/xt_socket.ko.xz.
func modules(list []byte) map[string]bool {
	names := map[string]bool{}
	for line := range bytes.Lines(list) {
		file, _, _ := strings.Cut(strings.TrimSpace(string(line)), ":")
		if base, _, ok := strings.Cut(path.Base(file), ".ko"); ok {
			names[strings.ReplaceAll(base, "-", "_")] = true
		}
	}
	return names
}

// mayLoad returns an error if modules can no longer be loaded or, if Load is set, this
// process cannot load them.
func (k *kernel) mayLoad(ctx context.Context, name string, we bool) error {
	text, err := input.ReadFile(ctx, filepath.Join(k.root, "/proc/sys/kernel/modules_disabled"), input.MaxModules)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return code.Errorf(code.ModuleNotLoadable, "kernel module %s is not built in, and this kernel does not support loading modules, whatever is in %s: boot a kernel that has it", name, k.dir)
	case err != nil:
		return fmt.Errorf("kernel module %s: %w", name, err)
	case strings.TrimSpace(string(text)) != "0":
		return code.Errorf(code.ModuleNotLoadable, "kernel module %s is not loaded, and cannot be until the next boot, since kernel.modules_disabled is set: add a file in /etc/modules-load.d, and reboot", name)
	case we:
		return mayRun(name)
	}
	return nil
}

// mayRun returns an error unless there is a modprobe that only root can change.
func mayRun(name string) error {
	switch _, err := hosttool.Find("modprobe"); {
	case errors.Is(err, fs.ErrNotExist):
		return code.Errorf(code.ModuleNotLoadable, "kernel module %s is not loaded, and there is no modprobe: in a container, enter the host's mount namespace; on a node without one, load it in the way of the node's system", name)
	case err != nil:
		return code.Errorf(code.ModuleNotLoadable, "kernel module %s is not loaded, and modprobe is %w", name, err)
	}
	return nil
}

// load runs the node's modprobe for a module, and verifies that it is loaded then.
func (k *kernel) load(ctx context.Context, name string) error {
	modprobe, err := hosttool.Find("modprobe")
	if err == nil {
		err = modprobe.Run(ctx, "", nil, "--", name)
	}
	if err == nil {
		var active bool
		if active, err = k.loaded(ctx, name); err == nil && !active {
			err = errors.New("modprobe succeeded without loading it: look for an install line in modprobe.d")
		}
	}
	if err == nil {
		return nil
	}
	if text := err.Error(); strings.Contains(text, "not permitted") || strings.Contains(text, "denied") {
		if missing := remedy.Missing(remedy.SysModule); len(missing) > 0 {
			err = remedy.Add(err, "needs "+remedy.Names(missing...)+" in the initial user namespace")
		} else {
			err = remedy.Add(err, "needs "+remedy.Names(remedy.SysModule)+" in the initial user namespace, which is in effect here: "+remedy.Refused+", or the kernel is locked down and the module not signed for it")
		}
	}
	return code.Errorf(code.ModuleNotLoadable, "load kernel module %s: %w", name, err)
}
