// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package bpffs mounts the BPF file system, where eBPF programs and maps are
// pinned, and can unmount it again.
//
// Everything acts in the mount namespace of the calling thread. In a container,
// that is the container's namespace, and a mount stays inside it unless the thread
// has entered the host's namespace (package bootstrap/hostns) or the volume has
// mountPropagation: Bidirectional (see [Mount.Shared]). The package starts no
// goroutines.
//
// Mounting and unmounting need CAP_SYS_ADMIN in the initial user namespace: the
// kernel mounts bpf in no other. If a seccomp profile denies the system calls that
// create a mount first and attach it later, mount(2) does both at once. Read-only
// methods need no capability.
//
// Errors name the path and, if the kernel denies a call, the missing permission;
// they wrap the kernel's error. Callers can branch on [ErrForeign]. On systems
// other than Linux, errors match [errors.ErrUnsupported], unless [Mount.Kernel] is
// a fake (package bootstraptest).
//
// Do not use this package to change an existing bpffs: it is accepted as it is,
// even if its mode or options differ (see [Mount.Advise]).
package bpffs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/filemode"
	"github.com/slipway-dev/slipway/internal/fsmount"
	"github.com/slipway-dev/slipway/internal/mountinfo"
	"github.com/slipway-dev/slipway/mount"
)

// defaultPath is the path on which a node's bpffs is mounted.
const defaultPath = "/sys/fs/bpf"

// defaultMode is the default mode of a bpffs's top directory: only root can list
// it.
const defaultMode fs.FileMode = 0o700

// ErrForeign means that a file system other than bpf is mounted on the path.
var ErrForeign = code.New(code.BPFFSForeign, "another file system is mounted there")

const fstype = "bpf"

// EnsureMounted mounts bpf on path as a zero [Mount] would, unless a bpffs is
// already mounted there. It records nothing.
func EnsureMounted(path string) error {
	if path == "" {
		return errors.New("mount bpf: no path given")
	}
	return Mount{Path: path}.Apply(context.Background())
}

// Mount is the state of a node that has a BPF file system mounted on a path.
// In a plan it is what a step wants. The zero value is the node's own bpffs.
type Mount struct {
	// Path is the path to mount on; relative paths, "..", and symbolic links are
	// resolved first. Missing directories are made with mode 0755. If empty, it is
	// /sys/fs/bpf.
	Path string

	// Mode is the mode of the top directory of a newly mounted bpffs. If zero, it is
	// 0700. The kernel always adds the sticky bit.
	Mode fs.FileMode

	// Fallback is used instead of Path if another file system is mounted on Path.
	// If Fallback is empty, such a mount is ErrForeign. [Mount.Mounted] returns the
	// one in use.
	Fallback string

	// Shared requires that a new mount also appears outside the container, so that
	// it outlives the container. For that, the mount on which it is made must be in
	// a peer group (shared:N in proc_pid_mountinfo(5)) and, if the mounts of pid 1
	// can be read, one of them must be in the same group. In a pod with its own pid
	// namespace, Apply cannot tell whether the host is among the peers. A bpffs
	// that is already mounted is not checked: in a new container, it can only have
	// come from the host.
	Shared bool

	// Kernel is the kernel to call. If nil, it is the running one.
	Kernel mount.Mounter
}

// Kind is the kind of the mounts, for undoing what was recorded of them, whatever their paths
// are now. A mount is undone if it is visible, holds no pins and is not in use. Otherwise it
// is left and stays recorded, and the error names the pins.
var Kind = Mount{}.system().Kind()

func (m Mount) system() fsmount.System {
	return fsmount.System{Name: "bpffs", FSType: fstype, Kernel: m.Kernel, Keeps: holdsPins}
}

// Wants wants a bpffs on Path or, if another file system is mounted there, on Fallback. On
// it, no file can be executed, opened as a device or run setuid.
func (m Mount) Wants(ctx context.Context) (ledger.Wants, error) {
	s, path := m.system(), cmp.Or(m.Path, defaultPath)
	if p, isFallback, _ := m.look(fsmount.Or(m.Kernel)); isFallback { // another error is met again below
		s.Note, path = " ("+path+" holds another file system)", p.Path
	}
	to := ledger.State{Mode: filemode.Unix(m.mode())}
	return s.Wants(ctx, path, to, func(k mount.Mounter, p fsmount.Place) error {
		if _, _, err := m.look(k); err != nil {
			return err
		}
		return m.checkPropagation(k, p)
	}), nil
}

func (m Mount) mode() fs.FileMode { return cmp.Or(m.Mode, defaultMode) }

// look finds the place: Path, or Fallback if Path is occupied.
func (m Mount) look(k mount.Mounter) (p fsmount.Place, isFallback bool, err error) {
	p, err = lookAt(k, cmp.Or(m.Path, defaultPath))
	if m.Fallback == "" || !errors.Is(err, ErrForeign) {
		return p, false, err
	}
	first := err
	if p, err = lookAt(k, m.Fallback); err != nil {
		err = fmt.Errorf("%w; fallback: %w", first, err)
	}
	return p, true, err
}

func lookAt(k mount.Mounter, path string) (fsmount.Place, error) {
	p, err := fsmount.Look(k, path)
	if err != nil {
		return p, fmt.Errorf("bpffs: %w", err)
	}
	if p.Mount == "" || p.FSType == fstype {
		return p, nil
	}
	return p, p.Foreign(k, "bpffs", ErrForeign)
}

// mounted returns the resolved path on which a bpffs is mounted: Path or, if
// another file system is mounted there, Fallback. It returns "" if no bpffs is. Its
// running time does not depend on the number of other mounts, unless another file
// system is mounted on Path.
func (m Mount) mounted(ctx context.Context) (path string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	p, _, err := m.look(fsmount.Or(m.Kernel))
	if err != nil || !p.Shows(fstype) {
		return "", err
	}
	return p.Path, nil
}

// Check lists the changes that Apply would make.
func (m Mount) Check(ctx context.Context) (changes []string, err error) { return ledger.Check(ctx, m) }

// Apply mounts bpf unless it is mounted, and records nothing. If several calls run at once,
// even in several processes, one of them mounts it and the others find that mount. The
// mount of another call may cover it for a moment, so hold the node's lock if you
// pin an object right afterwards.
func (m Mount) Apply(ctx context.Context) error { return fsmount.Apply(ctx, m) }

// Advise returns remarks for an administrator on conditions that Apply does not
// change: mounts that the bpffs covers on the same path, whose pins are invisible,
// and a mode or options that differ from those that Apply would set. It reads the
// list of all mounts.
func (m Mount) Advise(ctx context.Context) (remarks []string, err error) {
	path, err := m.mounted(ctx)
	if err != nil || path == "" {
		return nil, err
	}
	k := fsmount.Or(m.Kernel)
	infos, err := fsmount.Mounts(k)
	if err != nil {
		return nil, fmt.Errorf("bpffs on %s: %w", path, err)
	}
	on := mountinfo.On(infos, path)
	if len(on) == 0 {
		return nil, nil
	}
	if r := stacked(path, on); r != "" {
		remarks = append(remarks, r)
	}
	different, err := m.different(k, path, on[len(on)-1])
	return append(remarks, different...), err
}

// stacked names the mounts on path if there are several. A directory that a
// container runtime has mounted there as a volume does not count.
func stacked(path string, on []mountinfo.Mount) string {
	var names []string
	for _, i := range on {
		if i.FSType == fstype || i.Whole() {
			names = append(names, fmt.Sprintf("%s (id %d)", i.FSType, i.ID))
		}
	}
	if len(names) < 2 {
		return ""
	}
	return fmt.Sprintf("%d mounts on %s, only the last is visible: %s", len(names), path, strings.Join(names, ", "))
}

func (m Mount) different(k mount.Mounter, path string, visible mountinfo.Mount) (remarks []string, err error) {
	if slices.Contains(visible.Options, "ro") {
		remarks = append(remarks, fmt.Sprintf("bpffs on %s is mounted with ro", path))
	}
	for _, option := range []string{"nodev", "noexec", "nosuid"} {
		if !slices.Contains(visible.Options, option) {
			remarks = append(remarks, fmt.Sprintf("bpffs on %s is mounted without %s", path, option))
		}
	}
	f, err := k.Open(path)
	if err != nil {
		return remarks, fmt.Errorf("bpffs on %s: %w", path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return remarks, fmt.Errorf("bpffs on %s: %w", path, err)
	}
	// The kernel adds the sticky bit to whatever mode it is given.
	has, want := filemode.Unix(info.Mode())|0o1000, filemode.Unix(m.mode())|0o1000
	if has != want {
		remarks = append(remarks, fmt.Sprintf("bpffs on %s has mode %04o, not %04o", path, has, want))
	}
	return remarks, nil
}
