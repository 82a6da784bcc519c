// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package preflight

import (
	"errors"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
)

// ciliumFeatures are the kernel features that Cilium's agent needs and that can be tried
// without side effects: the agent exits at its start if one is missing (CheckRequirements
// of pkg/datapath/linux/requirements.go, those that 1.18.3 and 1.20.2 have in common).
func ciliumFeatures() []Feature {
	helper := func(name, since string, helper asm.BuiltinFunc, programs ...ebpf.ProgramType) Feature {
		return Feature{Name: "the helper " + name, Since: since, Have: func() error {
			var errs []error
			for _, program := range programs {
				errs = append(errs, features.HaveProgramHelper(program, helper))
			}
			return errors.Join(errs...)
		}}
	}
	return []Feature{
		{"the syscall bpf (CONFIG_BPF_SYSCALL)", "4.4", func() error { return features.HaveMapType(ebpf.Hash) }},
		{"cgroup programs for socket addresses (CONFIG_CGROUP_BPF)", "4.17", func() error { return features.HaveProgramType(ebpf.CGroupSockAddr) }},
		{"programs of a million instructions", "5.2", features.HaveLargeInstructions},
		helper("bpf_skb_change_tail", "4.9", asm.FnSkbChangeTail, ebpf.SchedCLS),
		helper("bpf_get_socket_cookie", "4.12", asm.FnGetSocketCookie, ebpf.CGroupSockAddr),
		helper("bpf_get_current_cgroup_id", "4.18", asm.FnGetCurrentCgroupId, ebpf.CGroupSockAddr),
		helper("bpf_jiffies64", "5.6", asm.FnJiffies64, ebpf.CGroupSock, ebpf.CGroupSockAddr, ebpf.SchedCLS, ebpf.XDP),
		helper("bpf_get_netns_cookie", "5.7", asm.FnGetNetnsCookie, ebpf.CGroupSock, ebpf.CGroupSockAddr),
		helper("bpf_csum_level", "5.8", asm.FnCsumLevel, ebpf.SchedCLS),
		helper("bpf_redirect_neigh", "5.10", asm.FnRedirectNeigh, ebpf.SchedCLS),
		helper("bpf_redirect_peer", "5.10", asm.FnRedirectPeer, ebpf.SchedCLS),
	}
}

// isMissing reports whether the error says that the kernel lacks the feature.
func isMissing(err error) bool {
	return errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, errors.ErrUnsupported)
}
