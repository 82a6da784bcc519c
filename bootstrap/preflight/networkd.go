// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package preflight

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/input"
)

// Networkd is a check whether systemd-networkd removes routes and rules of other programs, as it
// does by default when it starts and when a link comes up again: ManageForeignRoutes=
// (since systemd 246) and ManageForeignRoutingPolicyRules= (249) of networkd.conf(5). Its
// finding is a warning: nothing fails until then. Networkd spares routes and rules with
// protocol kernel; an agent may have some. If networkd has not run since the node's boot
// and is not enabled, nothing is checked.
//
// It reads networkd's configuration as networkd does: the first main file that exists in
// /etc, /run, /usr/local/lib and /usr/lib, and then the drop-ins, sorted by name.
func Networkd(ctx context.Context) (findings []error, err error) { return networkd{"/"}.findings(ctx) }

type networkd struct{ root string }

const maxNetworkd = 1 << 20 // bytes of one of networkd's files

// foreign are the settings, both "yes" by default.
var foreign = []string{"ManageForeignRoutes", "ManageForeignRoutingPolicyRules"}

func (n networkd) findings(ctx context.Context) ([]error, error) {
	if active, err := n.active(); err != nil || !active {
		return nil, err
	}
	files, err := n.files(ctx)
	var errs failure.Set
	errs.Add(err)
	set := map[string]bool{} // to no
	for _, file := range files {
		raw, err := input.ReadDropIn(ctx, file, maxNetworkd)
		errs.Add(err)
		apply(set, string(raw))
	}
	missing := slices.DeleteFunc(slices.Clone(foreign), func(key string) bool { return set[key] })
	if len(missing) == 0 || errs.Join() != nil {
		return nil, errs.Join()
	}
	return []error{code.Errorf(code.PreflightNetworkd, "systemd-networkd removes the agent's routes and rules whenever it starts or a link comes up again, and pods lose their network (set %s=no in the section [Network] of /etc/systemd/networkd.conf.d/90-agent.conf, and restart systemd-networkd before the agent starts)",
		strings.Join(missing, "=no and "))}, nil
}

// active reports whether networkd has run since the node's boot, or will at the next one.
func (n networkd) active() (bool, error) {
	for _, sign := range []string{
		"/run/systemd/netif/state", // it keeps its state there
		"/etc/systemd/system/multi-user.target.wants/systemd-networkd.service",
		"/etc/systemd/system/dbus-org.freedesktop.network1.service",
	} {
		switch _, err := os.Lstat(n.path(sign)); {
		case err == nil:
			return true, nil
		case !errors.Is(err, fs.ErrNotExist):
			return false, err
		}
	}
	return false, nil
}

func (n networkd) path(name string) string { return filepath.Join(n.root, name) }

// files lists the files that networkd reads, in its order: later ones win.
func (n networkd) files(ctx context.Context) (files []string, err error) {
	dirs := []string{"/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd"}
	var dropins []string
	for _, dir := range dirs {
		main := n.path(dir + "/networkd.conf")
		if _, err := os.Lstat(main); err == nil && len(files) == 0 {
			files = append(files, main)
		}
		dropins = append(dropins, n.path(dir+"/networkd.conf.d"))
	}
	more, err := input.DropIns(ctx, dropins, "")
	return append(files, more...), err
}

// apply notes which of the foreign settings a file sets to no, or to yes.
func apply(no map[string]bool, content string) {
	section := ""
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		key, value, _ := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.ToLower(strings.TrimSpace(value))
		switch {
		case strings.HasPrefix(line, "["):
			section = line
		case section != "[Network]" || !slices.Contains(foreign, key):
		case slices.Contains([]string{"0", "no", "n", "false", "f", "off"}, value): // parse_boolean of systemd
			no[key] = true
		case slices.Contains([]string{"1", "yes", "y", "true", "t", "on"}, value):
			no[key] = false
		}
	}
}
