// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

// Cilium returns the installation of Cilium's agent, in a mode of [Agent] (if
// empty: alone): its configuration, under the file name that Cilium uses, and the
// suffix of the files that Cilium sets aside. The caller fills in the plugins, and
// other fields that differ.
func Cilium(mode string) Install {
	return Install{Config: CiliumAgent(mode), ConfName: "05-cilium.conflist", BackupSuffix: ".cilium_bak"}
}

// CiliumAgent returns the configuration of Cilium's agent in the given mode.
func CiliumAgent(mode string) Agent {
	a := Agent{Plugin: "cilium-cni", LogFile: "/var/run/cilium/cilium-cni.log", Mode: mode}
	if a.alone() {
		a.Network = "cilium"
	}
	return a
}
