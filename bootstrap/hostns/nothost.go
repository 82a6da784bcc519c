// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// ErrNotHost is matched by the errors of [Host.Check] and [Host.CheckPlaces]:
// the path belongs to this container or systemd unit, not to the host.
var ErrNotHost = code.New(code.HostNotHost, "not the host's")

// checkFile returns an error that matches [ErrNotHost] if a file that is made at
// path, without entering the host's namespaces, would stay in the calling thread's
// container: on the container's root, on a volume that ends with the pod, or on a
// mount that pid 1 does not have. The error names the volume to mount. A hostPath volume
// belongs to the host, and outside of containers everything does.
//
// A container is recognised by its mounts: a root other than pid 1's, if that is
// visible, the files that a kubelet mounts into each container, or an overlay root
// that is not shared. If it cannot be determined, there is no error.
//
// Below /proc/sys, only the values below net are checked, which belong to a network
// namespace. A container's network namespace is certain to be the host's only if it is
// the kernel's first one, as in a pod with hostNetwork; on a node that is itself a
// container this cannot be determined. A systemd unit with a network namespace of its own
// (PrivateNetwork=) counts as a container here too.
func checkFile(path string) error { return checkPath(path, side.file) }

// checkMount returns an error that matches [ErrNotHost] if the host would not see a
// mount of type fstype that is made at path without entering the host's namespaces:
// unless that mount exists already, it must be made on top of a mount that is shared with
// pid 1 of the host (shared:N in proc_pid_mountinfo(5)). Here a systemd unit with private
// mounts counts as a container too.
func checkMount(path, fstype string) error {
	return checkPath(path, func(s side, path string) error { return s.mount(path, fstype) })
}

// side is what the calling thread can see of the place where it runs.
type side struct {
	mounts []mountinfo.Mount
	init   []mountinfo.Mount // those of pid 1; nil: they cannot be seen
	net    network
}

// network describes the thread's network namespace.
type network struct {
	first     bool   // the kernel's first one
	own, init string // its name and that of pid 1's, as in namespaces(7); empty if unknown
}

// apart reports whether pid 1 is known to be in another mount namespace: the two
// have no mount in common.
func (s side) apart() bool {
	ours := map[int]bool{}
	for _, m := range s.mounts {
		ours[m.ID] = true
	}
	return len(s.init) > 0 && !slices.ContainsFunc(s.init, func(m mountinfo.Mount) bool { return ours[m.ID] })
}

// container reports whether the root is not the host's.
func (s side) container() bool {
	root, known := top(s.mounts, "/")
	if !known {
		return false
	}
	if s.apart() {
		host, known := top(s.init, "/")
		return known && (root.Dev != host.Dev || root.Root != host.Root)
	}
	return s.pod() || root.FSType == "overlay" && !root.Shared()
}

// kubeletFiles are the files that a kubelet mounts into each container, from its
// directory for the pod.
func kubeletFiles() []string { return []string{"/etc/hosts", "/dev/termination-log"} }

// pod reports whether there is a file that a kubelet mounts into a container.
func (s side) pod() bool {
	return slices.ContainsFunc(s.mounts, func(m mountinfo.Mount) bool {
		return slices.Contains(kubeletFiles(), m.Point) && strings.Contains(m.Root, "/pods/")
	})
}

// top returns the visible mount on point.
func top(mounts []mountinfo.Mount, point string) (mountinfo.Mount, bool) {
	on := mountinfo.On(mounts, point)
	if len(on) == 0 {
		return mountinfo.Mount{}, false
	}
	return on[len(on)-1], true
}

func (s side) file(path string) error {
	m, known := mountinfo.Holding(s.mounts, path)
	switch {
	case mountinfo.Below(path, valuesOfNet):
		return s.value(path)
	case mountinfo.Below(path, values):
		return nil
	case !known:
		return nil
	case s.container() && m.Point == "/":
		return stays(path, "it is on the container's own root", path)
	case s.container() && kernels(m):
		return stays(path, fmt.Sprintf("it is on the container's own %s", m.FSType), path)
	case s.container() && strings.Contains(m.Root, "/volumes/kubernetes.io~"):
		return stays(path, "it is on a volume that ends with the pod", path)
	case s.apart() && !slices.ContainsFunc(s.init, func(i mountinfo.Mount) bool { return i.Dev == m.Dev }):
		return stays(path, "the mount on "+m.Point+" is not one of pid 1's", path)
	}
	return nil
}

// The kernel's values, and those of a network namespace.
const (
	values      = "/proc/sys"
	valuesOfNet = "/proc/sys/net"
)

// value is file for the kernel values of the thread's network namespace.
func (s side) value(path string) error {
	switch {
	case s.net.first:
		return nil
	case s.container():
		return leaves(path, "nothing shows that this container is in the host's network namespace")
	case s.apart() && s.net.own != "" && s.net.init != "" && s.net.own != s.net.init:
		return leaves(path, "pid 1 is in another network namespace")
	}
	return nil
}

func leaves(path, why string) error {
	return fmt.Errorf("%s: %w: %s, so a value set there would not reach the host: "+
		"mount the host's /proc into the container (hostPath: {path: /proc}) and enter the host through it, or share the host's network (hostNetwork: true), "+
		"which cannot be verified if the node is itself a container", path, ErrNotHost, why)
}

// kernels reports whether m is of a type that a runtime mounts into each container.
func kernels(m mountinfo.Mount) bool {
	return slices.Contains([]string{"proc", "sysfs", "devpts", "mqueue", "cgroup", "cgroup2"}, m.FSType) ||
		m.FSType == "tmpfs" && mountinfo.Below(m.Point, "/dev")
}

func stays(path, why, volume string) error {
	return fmt.Errorf("%s: %w: %s, so nothing made there would reach the host: "+
		"mount the host's /proc into the container (hostPath: {path: /proc}) and enter the host through it, or mount this path itself (hostPath: {path: %s})",
		path, ErrNotHost, why, volume)
}

func (s side) mount(path, fstype string) error {
	m, known := mountinfo.Holding(s.mounts, path)
	container, apart := s.container(), s.apart()
	switch {
	case !known, !container && !apart:
		return nil
	case m.Point == path && m.FSType == fstype:
		return nil // a new namespace has it from the host
	case container && m.Point == "/":
		return unseen(path, "it would be made on top of the container's own root", m)
	case apart && !sharedWith(s.init, m), !m.Shared():
		return unseen(path, "the mount on "+m.Point+" is not shared with pid 1", m)
	}
	return nil
}

func unseen(path, why string, m mountinfo.Mount) error {
	return fmt.Errorf("mount on %s: %w: %s, so the host would not see it: "+
		"enter the host through its /proc (in a pod a volume with hostPath: {path: /proc}; in a unit with private mounts /proc itself), "+
		"or give the volume mountPropagation: Bidirectional, and if the host's own mount is not shared, run there: mount --make-shared %s",
		path, ErrNotHost, why, m.Point)
}

// sharedWith reports whether one of mounts is in the peer group of m.
func sharedWith(mounts []mountinfo.Mount, m mountinfo.Mount) bool {
	group := m.Group()
	return group != "" && slices.ContainsFunc(mounts, func(other mountinfo.Mount) bool { return other.Group() == group })
}
