// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/cniinstall"
)

func TestSEC3_WhatNoInstallationCanHaveRecordedIsNotObeyed(t *testing.T) {
	for object, want := range map[string]string{
		"cni/file /opt/cni/bin/cilium-cni":               "",
		"cni/file /etc/cni/net.d/05-cilium.conflist":     "",
		"cni/backup /etc/cni/net.d/10-x.conf.cilium_bak": "",
		"cni/dir /etc/cni":                               "",
		"cni/file /etc/passwd":                           "CNI folder /etc is the system's",
		"cni/backup /etc/shadow":                         "CNI folder /etc is the system's",
		"cni/file /usr/bin/sudo":                         "CNI folder /usr/bin is the system's",
		"cni/file /init":                                 "CNI folder / is the system's",
		"cni/file /etc/cni/../passwd":                    "not an absolute, clean path",
		"cni/file /proc/1/root/etc/passwd":               "below /proc",
		"cni/file etc/cni/net.d/05-cilium.conflist":      "not an absolute, clean path",
		"cni/dir /": "not an absolute, clean path",
		"cni/file /sys/fs/cgroup/cgroup.subtree_control":    "below /sys",
		"cni/file /dev/shm/05-cilium.conflist":              "below /dev",
		"cni/file /opt/cni/bin/../../../usr/bin/cilium-cni": "not an absolute, clean path",
	} {
		kind, path, _ := strings.Cut(object, " ")
		err := cniinstall.Handler{}.Owns(journal.Entry{Kind: kind, Object: path})
		if want == "" {
			require.NoError(t, err, object)
		} else {
			require.ErrorContains(t, err, want, object)
		}
	}
}

func TestSEC3_NothingIsInstalledWhereItCouldNotBeUndone(t *testing.T) {
	for _, i := range []cniinstall.Install{{BinDir: "/usr/bin"}, {ConfDir: "/etc/"}, {BinDir: "/opt/../etc"}} {
		_, err := i.Check(t.Context())
		require.ErrorContains(t, err, "is the system's")
		require.ErrorContains(t, i.Apply(t.Context()), "is the system's")
	}
}
