// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package bpffs mounts the BPF file system, where eBPF programs and maps are
// pinned, and takes it back.
//
// Everything acts in the mount namespace of the calling thread: in a container
// that is the container's, unless the thread has entered the host's (package
// bootstrap/hostns) or the volume has mountPropagation: Bidirectional (see
// [Mount.Propagation]). Nothing starts a goroutine.
//
// Mounting and unmounting need CAP_SYS_ADMIN in the initial user namespace: the
// kernel mounts no bpf in another. A mount is made before it is attached, so
// that the record of it is exact whenever the process dies; where a seccomp
// profile refuses the calls for that, mount(2) does both. To look needs no
// capability.
//
// Errors name the path and, where the kernel refuses, what is missing; they
// wrap what the kernel answered. [ErrForeign] is the one to branch on. On other
// systems than Linux they match [errors.ErrUnsupported], unless
// [Mount.Kernel] is a fake (package bpffstest).
//
// Do not use it to change a bpffs that exists: one with another mode or other
// options is accepted as it is (see [Mount.Advise]).
package bpffs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/internal/filemode"
	"github.com/slipway-dev/slipway/internal/fsmount"
	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// DefaultPath is where a node's bpffs is mounted.
const DefaultPath = "/sys/fs/bpf"

// DefaultMode is the mode of a bpffs's top directory unless told otherwise:
// only root looks in.
const DefaultMode fs.FileMode = 0o700

// ErrForeign says that another file system is mounted on the path.
var ErrForeign = errors.New("another file system is mounted there")

const (
	fstype = "bpf"
	kind   = "bpffs" // of entries in the journal
)

// Kernel is what of the kernel is called, always by resolved paths. Package
// bpffstest has a fake of it.
type Kernel interface {
	// Stat tells about path, without following a link at its end: the type of
	// the file system that it is on, as in /proc/filesystems; which directory
	// of that file system it is (root: equal for two mounts of the same
	// directory); and the identity of the mount that it is the top of, "" if
	// it is an ordinary directory.
	Stat(path string) (fstype, root, mount string, err error)

	// Mount makes a file system of the type, mounted nowhere yet, calls before
	// with its root as Stat will tell it, and attaches it to path. The root is ""
	// where it cannot be known before (a seccomp profile leaves nothing but
	// mount(2)). An error of before ends it, and nothing is attached. It never
	// stacks: where a file system of the same type got there first, the new one
	// is dropped and the error matches EBUSY. Options are as for mount(8), and
	// source=NAME is the source that mountinfo shows.
	Mount(path, fstype, options string, before func(root string) error) error

	// Unmount takes the topmost mount off path: EINVAL if path is no mount,
	// EBUSY if it is in use.
	Unmount(path string) error

	// Open opens a file or directory.
	Open(name string) (fs.File, error)
}

// EnsureMounted mounts bpf on path as the zero [Mount] does, unless a bpffs is
// mounted there. Nothing is recorded.
func EnsureMounted(path string) error {
	return Mount{Path: path}.Apply(context.Background())
}

// Mount is the state of a node that has a BPF file system mounted on a path.
// It is a bootstrap.CheckReverter. The zero value is the node's own bpffs.
type Mount struct {
	// Path is where to mount; a relative path, "..", and symbolic links are
	// resolved first. Missing directories are made with mode 0755. Zero:
	// DefaultPath.
	Path string

	// Mode is the mode of the top directory of a bpffs that is mounted anew.
	// Zero: DefaultMode. The kernel adds the sticky bit in any case.
	Mode fs.FileMode

	// Fallback is used instead of Path where another file system is mounted on
	// Path. Zero: that is ErrForeign. [Mount.Mounted] says which is in use.
	Fallback string

	// Propagation says whether a new mount must appear outside of the mount
	// namespace that it is made in. Zero: AnyPropagation.
	Propagation Propagation

	// Journal is where what Apply made is recorded, for Revert. Nil: nothing is
	// recorded.
	Journal *journal.Journal

	// Kernel is the kernel to ask. Zero: the running one.
	Kernel Kernel
}

func (m Mount) request() fsmount.Request {
	return fsmount.Request{Kind: kind, Journal: m.Journal, FSType: fstype, Options: m.options()}
}

// options are those of a new mount; its files are neither programs to execute,
// nor devices, nor setuid.
func (m Mount) options() string {
	return fmt.Sprintf("nosuid,nodev,noexec,mode=%o", filemode.Unix(m.mode()))
}

func (m Mount) mode() fs.FileMode { return cmp.Or(m.Mode, DefaultMode) }

// place is the path that is to be used, and why not another.
type place struct {
	fsmount.Place
	why string // "" for Path
}

func (p place) mounted() bool { return p.Mount != "" && p.FSType == fstype }

// look finds the place: Path, or Fallback if Path is occupied.
func (m Mount) look(ctx context.Context) (place, fsmount.Kernel, error) {
	k := fsmount.Or(m.Kernel)
	if err := ctx.Err(); err != nil {
		return place{}, k, err
	}
	path := cmp.Or(m.Path, DefaultPath)
	p, err := lookAt(k, path)
	if m.Fallback == "" || !errors.Is(err, ErrForeign) {
		return place{Place: p}, k, err
	}
	first := err
	if p, err = lookAt(k, m.Fallback); err != nil {
		return place{}, k, fmt.Errorf("%w; fallback: %w", first, err)
	}
	return place{Place: p, why: path + " holds another file system"}, k, nil
}

func lookAt(k fsmount.Kernel, path string) (fsmount.Place, error) {
	p, err := fsmount.Look(k, path)
	if err != nil {
		return p, fmt.Errorf("bpffs: %w", err)
	}
	if p.Mount == "" || p.FSType == fstype {
		return p, nil
	}
	occupant, err := p.Occupied(k)
	if err != nil {
		return p, fmt.Errorf("bpffs on %s: %w", p.Path, err)
	}
	if occupant != "" {
		return p, fmt.Errorf("bpffs on %s: %w: %s (unmount it, or name another path)", p.Path, ErrForeign, occupant)
	}
	return p, nil
}

// Mounted returns the path, resolved, on which a bpffs is mounted: Path or,
// where that is occupied, Fallback. It returns "" if there is none. It takes the
// same time whatever else is mounted, unless the path is occupied.
func (m Mount) Mounted(ctx context.Context) (path string, err error) {
	p, _, err := m.look(ctx)
	if err != nil || !p.mounted() {
		return "", err
	}
	return p.Path, nil
}

// Check lists what Apply would do.
func (m Mount) Check(ctx context.Context) (changes []string, err error) {
	p, k, err := m.look(ctx)
	if err != nil || p.mounted() {
		return nil, err
	}
	if err := m.checkPropagation(k, p.Place); err != nil {
		return nil, err
	}
	changes, err = p.Plan(k, "mount bpf")
	if err != nil {
		return nil, fmt.Errorf("bpffs on %s: %w", p.Path, err)
	}
	if p.why != "" {
		changes[len(changes)-1] += " (" + p.why + ")"
	}
	return changes, nil
}

// Apply mounts bpf unless it is mounted. Of several calls at once, also from
// several processes, one mounts and the others find it; for a moment another's
// may lie upon it, so take the node's lock where pins are made right away.
func (m Mount) Apply(ctx context.Context) error {
	p, k, err := m.look(ctx)
	if err != nil {
		return err
	}
	if p.mounted() {
		return m.wrap(p, fsmount.Adopt(ctx, k, p.Place, m.request()))
	}
	if err := m.checkPropagation(k, p.Place); err != nil {
		return err
	}
	err = fsmount.Attach(ctx, k, p.Place, m.request())
	if errors.Is(err, syscall.EBUSY) {
		if again, _, lookErr := m.look(ctx); lookErr == nil && again.mounted() {
			return nil // somebody else was first
		}
	}
	return m.wrap(p, err)
}

func (m Mount) wrap(p place, err error) error {
	if err != nil {
		return fmt.Errorf("mount bpf on %s: %w", p.Path, err)
	}
	return nil
}

// Advise returns what is worth knowing about the bpffs and is no reason to
// change it: mounts that lie under it on the same path, which hold pins that
// nobody sees, and a mode or options other than Apply would give. It reads the
// list of all mounts.
func (m Mount) Advise(ctx context.Context) (remarks []string, err error) {
	p, k, err := m.look(ctx)
	if err != nil || !p.mounted() {
		return nil, err
	}
	infos, err := fsmount.Mounts(k)
	if err != nil {
		return nil, fmt.Errorf("bpffs on %s: %w", p.Path, err)
	}
	on := mountinfo.On(infos, p.Path)
	if len(on) == 0 {
		return nil, nil
	}
	if r := stacked(p.Path, on); r != "" {
		remarks = append(remarks, r)
	}
	different, err := m.different(k, p.Path, on[len(on)-1])
	return append(remarks, different...), err
}

// stacked names the mounts on path if there are more than one. A directory
// that a container runtime handed in as a volume does not count.
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
	return fmt.Sprintf("%d mounts on %s, of which the last is visible: %s", len(names), path, strings.Join(names, ", "))
}

func (m Mount) different(k fsmount.Kernel, path string, visible mountinfo.Mount) ([]string, error) {
	var remarks []string
	for option, want := range map[string]bool{"nosuid": true, "nodev": true, "noexec": true, "ro": false} {
		switch has := slices.Contains(visible.Options, option); {
		case want && !has:
			remarks = append(remarks, fmt.Sprintf("bpffs on %s is mounted without %s", path, option))
		case has && !want:
			remarks = append(remarks, fmt.Sprintf("bpffs on %s is mounted with %s", path, option))
		}
	}
	slices.Sort(remarks)
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
