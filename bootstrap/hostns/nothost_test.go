// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/hostns"
)

// mountinfo of processes, as runc, systemd and kubelets set it up.
const (
	host = `25 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw
26 25 0:22 / /proc rw shared:5 - proc proc rw
27 25 0:23 / /sys rw shared:2 - sysfs sysfs rw
28 27 0:40 / /sys/fs/bpf rw shared:7 - bpf bpf rw
29 25 0:24 / /run rw shared:9 - tmpfs tmpfs rw
30 25 0:90 / /var/lib/kubelet/pods/u/volumes/kubernetes.io~empty-dir/mem rw shared:90 - tmpfs tmpfs rw
31 29 0:70 / /run/containerd/io.containerd.runtime.v2.task/k8s.io/c/rootfs rw shared:70 - overlay overlay rw
`
	// A privileged pod container in its own pid namespace.
	pod = `725 700 0:70 / / rw master:70 - overlay overlay rw,lowerdir=/a
726 725 0:100 / /proc rw - proc proc rw
727 725 0:101 / /dev rw - tmpfs tmpfs rw
728 725 0:23 / /sys rw - sysfs sysfs rw
729 725 8:1 /var/lib/kubelet/pods/u/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw
730 727 8:1 /var/lib/kubelet/pods/u/containers/n/1 /dev/termination-log rw - ext4 /dev/sda1 rw
731 725 8:1 /etc/cni/net.d /etc/cni/net.d rw - ext4 /dev/sda1 rw
732 725 8:1 /var/lib/kubelet/pods/u/volumes/kubernetes.io~empty-dir/e /scratch rw - ext4 /dev/sda1 rw
733 725 0:24 /cilium /run/cilium rw shared:9 - tmpfs tmpfs rw
734 728 0:40 / /sys/fs/bpf rw master:7 - bpf bpf rw
735 725 0:24 / /hostrun rw master:9 - tmpfs tmpfs rw
`
	// The same with a Bidirectional volume: runc makes the root shared, too.
	sharedPod = `725 700 0:70 / / rw shared:70 - overlay overlay rw,lowerdir=/a
729 725 8:1 /var/lib/kubelet/pods/u/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw
733 725 0:24 /cilium /run/cilium rw shared:9 - tmpfs tmpfs rw
`
	// A systemd unit with PrivateMounts=, ProtectSystem= and PrivateTmp=: its own peer groups,
	// which receive the host's mounts.
	unit = `825 800 8:1 / / rw shared:500 master:1 - ext4 /dev/sda1 rw
828 825 0:23 / /sys rw shared:501 master:2 - sysfs sysfs rw
829 825 0:24 / /run rw shared:502 master:9 - tmpfs tmpfs rw
830 825 0:120 / /tmp rw shared:503 - tmpfs tmpfs rw
831 828 0:40 / /sys/fs/bpf rw shared:504 master:7 - bpf bpf rw
`
	// A node that is itself a container, such as kind's: systemd is its pid 1.
	kind = `925 900 0:70 / / rw shared:600 - overlay overlay rw,lowerdir=/a
929 925 8:1 /var/lib/docker/containers/c/hosts /etc/hosts rw shared:601 - ext4 /dev/sda1 rw
`
	plain = `25 1 8:1 / / rw - ext4 /dev/sda1 rw
`
)

func TestSEC10_WhatStaysInAContainer(t *testing.T) {
	const root, ends, shared = "container's own root", "a volume that ends with the pod", "is not shared with pid 1"
	for name, c := range map[string]struct{ mounts, init, path, fstype, want string }{
		"host: file":          {host, host, "/etc/cni/net.d", "", ""},
		"host: mount":         {host, host, "/run/cilium/cgroupv2", "cgroup2", ""},
		"host, init unknown":  {host, "", "/run/cilium/cgroupv2", "cgroup2", ""},
		"host, nothing known": {"", "", "/etc", "", ""},
		"no systemd: mount":   {plain, plain, "/run/cilium/cgroupv2", "cgroup2", ""},
		"kind: file":          {kind, kind, "/etc/sysctl.d", "", ""},
		"kind: mount":         {kind, kind, "/run/cilium/cgroupv2", "cgroup2", ""},

		"pod: root":                 {pod, pod, "/etc/sysctl.d", "", root},
		"pod: hostPath":             {pod, pod, "/etc/cni/net.d", "", ""},
		"pod: below hostPath":       {pod, pod, "/etc/cni/net.d/x/y", "", ""},
		"pod: beside hostPath":      {pod, pod, "/etc/cni/net.d2", "", root},
		"pod: emptyDir":             {pod, pod, "/scratch/x", "", ends},
		"pod: own /dev":             {pod, pod, "/dev/x", "", "container's own tmpfs"},
		"pod: own /sys":             {pod, pod, "/sys/fs/x", "", "container's own sysfs"},
		"pod: tmpfs of the host":    {pod, pod, "/hostrun/x", "", ""},
		"pod: mount on root":        {pod, pod, "/run2/cgroupv2", "cgroup2", root},
		"pod: mount on hostPath":    {pod, pod, "/hostrun/cgroupv2", "cgroup2", shared},
		"pod: Bidirectional":        {pod, pod, "/run/cilium/cgroupv2", "cgroup2", ""},
		"pod: it is there":          {pod, pod, "/sys/fs/bpf", "bpf", ""},
		"pod: another type there":   {pod, pod, "/sys/fs/bpf", "cgroup2", shared},
		"shared pod: root":          {sharedPod, sharedPod, "/etc/sysctl.d", "", root},
		"shared pod: mount on root": {sharedPod, sharedPod, "/x", "cgroup2", root},
		"shared pod: Bidirectional": {sharedPod, sharedPod, "/run/cilium/cgroupv2", "cgroup2", ""},
		"host pid: root":            {pod, host, "/etc/sysctl.d", "", root},
		"host pid: hostPath":        {pod, host, "/etc/cni/net.d", "", ""},
		"host pid: own tmpfs":       {pod, host, "/dev/x", "", "container's own tmpfs"},
		"host pid: Bidirectional":   {pod, host, "/run/cilium/cgroupv2", "cgroup2", ""},
		"host pid: shared root":     {sharedPod, host, "/run2/x", "cgroup2", root},

		"unit: file":           {unit, host, "/etc/sysctl.d", "", ""},
		"unit: file on run":    {unit, host, "/run/cilium", "", ""},
		"unit: private tmp":    {unit, host, "/tmp/x", "", "the mount on /tmp is not one of pid 1's"},
		"unit: mount":          {unit, host, "/run/cilium/cgroupv2", "cgroup2", shared},
		"unit: mount on sys":   {unit, host, "/sys/fs/other", "bpf", shared},
		"unit: it is there":    {unit, host, "/sys/fs/bpf", "bpf", ""},
		"unit, init invisible": {unit, "", "/run/cilium/cgroupv2", "cgroup2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := hostns.Seen(c.mounts, c.init, c.path, c.fstype)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, hostns.ErrNotHost)
			require.ErrorContains(t, err, c.path)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "hostPath: {path: ")
		})
	}
}

// Kernel values below net belong to a network namespace: a container is refused unless its own
// is the kernel's first one.
func TestSEC10_ValuesThatStayInAContainer(t *testing.T) {
	const net, untold, other = "/proc/sys/net", "nothing shows that this container is in the host's network namespace", "pid 1 is in another network namespace"
	for name, c := range map[string]struct {
		mounts, init, path string
		first              bool
		own, initNet, want string
	}{
		"host":                        {host, host, net, true, "a", "a", ""},
		"host of a first one unknown": {host, host, net, false, "a", "a", ""},
		"host, init unknown":          {host, "", net, false, "a", "", ""},
		"nothing known":               {"", "", net, false, "", "", ""},
		"kind":                        {kind, kind, net, false, "a", "a", ""},
		"pod":                         {pod, pod, net, false, "a", "a", untold},
		"pod: one value":              {pod, pod, net + "/ipv4/ip_forward", false, "a", "a", untold},
		"pod with hostNetwork":        {pod, pod, net, true, "a", "a", ""},
		"pod with hostPID":            {pod, host, net, false, "a", "b", untold},
		"pod: pause is pid 1":         {pod, sharedPod, net, false, "a", "a", untold},
		"pod with both":               {pod, host, net, true, "a", "a", ""},
		"pod: the machine's value":    {pod, pod, "/proc/sys/kernel/timer_migration", false, "a", "a", ""},
		"pod: beside the values":      {pod, pod, "/proc/sysrq-trigger", true, "a", "a", "container's own proc"},
		"unit":                        {unit, host, net, false, "a", "a", ""},
		"unit with a network":         {unit, host, net, false, "b", "a", other},
		"unit, init invisible":        {unit, "", net, false, "b", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := hostns.SeenValue(c.mounts, c.init, c.path, c.first, c.own, c.initNet)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, hostns.ErrNotHost)
			require.ErrorContains(t, err, c.path+": ")
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "hostPath: {path: /proc}")
		})
	}
}
