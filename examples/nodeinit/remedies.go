// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"errors"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/sysctl"
)

// remedies are printed after an error, by commands that have the flag that ends it.
var remedies = []struct {
	of   error
	flag string
	say  string
}{
	{ledger.ErrChanged, "any-owner", "kept objects stay recorded, and the next uninstall tries again: restore or remove them by hand, or leave them for good: one by nodeinit forget OBJECT, all by nodeinit uninstall --accept-kept"},
	{ledger.ErrUnreadable, "state-dir", "nodeinit status names the objects, and nodeinit forget gives them up: one as OBJECT, all by --damaged, which keeps the other records; copy the directory first"},
	{ledger.ErrConflict, "override", "--override makes this agent prevail; nodeinit release --agent NAME gives up the wishes of an agent that has gone"},
	{ledger.ErrNotOwner, "any-owner", "--owner sets the owner, and --any-owner ignores the owner of the node"},
	{ledger.ErrNotOwner, "take-over", "--take-over makes the node this owner's again"},
	{hostns.ErrLocked, "lock-timeout", "--lock-timeout waits longer"},
	{bpffs.ErrForeign, "bpf-shared", "--bpf-root names another place, and --bpf-fallback one for where that is taken"},
	{bpffs.ErrPinned, "any-owner", "nodeinit cleanup --all-state removes an agent's leftovers there"},
	{cgroup.ErrNotRoot, "cgroup-repair", "--cgroup-repair replaces it"},
	{cgroup.ErrForeign, "cgroup-root", "--cgroup-root names another place"},
	{sysctl.ErrReadOnlyDir, "sysctl-conf-dir", "--sysctl-conf-dir DIR chooses another directory, --sysctl-conf-dir= sets the values without a file, --skip " + stepSysctl + " leaves the step out"},
	{cniinstall.ErrInUse, "while-alive", strandsPods},
	{cniinstall.ErrInUse, "force", "--force removes it nevertheless"},
	{cniinstall.ErrPluginMissing, "cni-wait", "--plugins installs it, --cni-wait waits until another agent has, and --plugins-elsewhere declares that the container runtime finds it"},
	{cniinstall.ErrNoLoopback, "plugins", "--plugins takes several folders, one of which may have it; --optional-plugins loopback goes on without"},
	{cniinstall.ErrTargetMissing, "cni-wait", "--cni-wait waits until another agent has written it"},
}

const strandsPods = "--while-alive removes it nevertheless"

// withRemedies returns err with the flags that end it.
func (a *app) withRemedies(cmd *cobra.Command, err error) error {
	said := map[error]bool{}
	for _, r := range remedies {
		if flag := cmd.Flag(r.flag); flag != nil && !flag.Hidden && errors.Is(err, r.of) && !said[r.of] {
			said[r.of] = true
			err = errors.Join(err, errors.New(r.say))
		}
	}
	var step *bootstrap.StepError
	if !errors.As(err, &step) || step.Step != stepCNI {
		return err
	}
	switch {
	case a.cniTemplate != "" && errors.Is(err, cniinstall.ErrInvalid):
		err = errors.Join(err, errors.New("--cni-version gives the configuration another version"))
	case errors.Is(err, syscall.EROFS):
		err = errors.Join(err, errors.New("have the container runtime look in a folder that can be written to; --cni-bin-dir and --cni-conf-dir say where if it does not, --skip "+stepCNI+" leaves the step out"))
	}
	return err
}
