// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

func TestCLN7_CgroupsOfAPod(t *testing.T) {
	const uid, static = "0123abcd-4567-89ab-cdef-0123456789ab", "0123456789abcdef0123456789abcdef"
	const systemd = "0123abcd_4567_89ab_cdef_0123456789ab"
	const other, otherSystemd = "fedcba98-4567-89ab-cdef-0123456789ab", "fedcba98_4567_89ab_cdef_0123456789ab"
	for owner, is := range map[string]bool{
		uid: true, static: true, systemd: false, "": false, uid + "0": false, "x" + uid[1:]: false, "0123ABCD" + uid[8:]: false, static[1:]: false,
	} {
		require.Equal(t, is, ledger.IsPod(owner), owner)
	}
	for path, want := range map[string]string{
		"/kubepods/burstable/pod" + uid + "/3a4f":     uid,
		"/kubepods/pod" + uid + "/3a4f/agents":        uid,
		"/kubepods/besteffort/pod" + static + "/3a4f": static,
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + systemd + ".slice/cri-containerd-3a4f.scope":  uid,
		"/kubepods.slice/kubepods-pod" + systemd + ".slice/crio-3a4f.scope":                                               uid,
		"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + systemd + ".slice/cri-containerd-3a4f.scope/init":  uid,
		"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + static + ".slice/cri-containerd-3a4f.scope": static,
		"/docker/3a4f/kubelet/kubepods/burstable/pod" + uid + "/3a4f":                                                     uid,
		"/machine/" + other + "/kubepods/pod" + uid + "/3a4f":                                                             uid,
		"/../../kubepods-burstable-pod" + systemd + ".slice/cri-containerd-3a4f.scope":                                    uid,
		"/": "", "/system.slice/kubelet.service": "", "/kubepods/burstable/" + uid: "", "/kubepods/pod" + uid + "0/3a4f": "",
		"/kubepods/pod" + systemd + "/3a4f":                                                                           "",
		"/kubepods/pod" + other + "/3a4f/kubepods/pod" + uid + "/x":                                                   other,
		"/kubepods.slice/kubepods-pod" + otherSystemd + ".slice/3a4f.scope/kubepods-pod" + systemd + ".slice/x.scope": other,
		"/user.slice/user-1000.slice/user@1000.service/kubepods/pod" + uid + "/x":                                     "",
		"/user.slice/user-1000.slice/user@1000.service/app.slice/kubepods-pod" + systemd + ".slice/x.scope":           "",
	} {
		for _, pod := range []string{uid, static, other} {
			require.Equal(t, pod == want, ledger.PodOf(path, pod), "%s in %s", path, pod)
		}
	}
}
