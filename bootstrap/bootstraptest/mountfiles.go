// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstraptest

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing/fstest"

	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// Open implements mount.Mounter.
func (k *Kernel) Open(name string) (fs.File, error) {
	if err := k.refused("open", name); err != nil {
		return nil, err
	}
	defer k.lock()()
	switch name {
	case mountinfo.Path, mountinfo.InitPath:
		return file(name, k.mountinfo())
	}
	m := k.visible(name)
	if m == nil {
		return os.Open(name)
	}
	return m.files().Open(cmp.Or(relative(m.point, name), "."))
}

func file(name, content string) (fs.File, error) {
	base := filepath.Base(name)
	return fstest.MapFS{base: {Data: []byte(content), Mode: 0o444}}.Open(base)
}

// files lists the files of m.
func (m *mount) files() fstest.MapFS {
	top := &fstest.MapFile{Mode: fs.ModeDir | 0o755}
	files := fstest.MapFS{".": top}
	switch m.fstype {
	case bpf:
		top.Mode = fs.ModeDir | fs.ModeSticky | m.mode()
		files["progs.debug"] = &fstest.MapFile{Mode: 0o400}
		files["maps.debug"] = &fstest.MapFile{Mode: 0o400}
	case cgroup2:
		files["cgroup.procs"] = &fstest.MapFile{Mode: 0o644}
	}
	for _, pin := range m.pins {
		files[pin] = &fstest.MapFile{Mode: 0o600}
	}
	return files
}

// mode is that of the top directory, 0777 unless an option gives another.
func (m *mount) mode() fs.FileMode {
	for o := range strings.SplitSeq(m.options, ",") {
		if octal, ok := strings.CutPrefix(o, "mode="); ok {
			bits, _ := strconv.ParseUint(octal, 8, 32)
			return fs.FileMode(bits).Perm()
		}
	}
	return 0o777
}

// mountinfo lists the mounts in the format of proc_pid_mountinfo(5).
func (k *Kernel) mountinfo() string {
	shared := " shared:1"
	if k.Private {
		shared = ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d 0 8:1 / / rw%s - ext4 /dev/root rw\n", baseID, shared)
	for n, m := range k.mounts {
		fmt.Fprintf(&b, "%d %d 0:%d %s %s %s%s - %s %s rw\n",
			m.id, k.parent(n), 100+m.id, escape(k.shown(m)), escape(m.point), m.attributes(), shared, m.fstype, m.source)
	}
	return b.String()
}

// parent is the mount to which the nth was attached.
func (k *Kernel) parent(n int) int {
	for i := n - 1; i >= 0; i-- {
		if below(k.mounts[n].point, k.mounts[i].point) {
			return k.mounts[i].id
		}
	}
	return baseID
}

// shown is m's root as seen from the caller's cgroup namespace.
func (k *Kernel) shown(m *mount) string {
	if m.fstype != cgroup2 {
		return m.root
	}
	rel, err := filepath.Rel(k.namespaceRoot(), m.root)
	if err != nil || rel == "." {
		return "/"
	}
	return "/" + filepath.ToSlash(rel)
}

// attributes are the options of the mount, without those of the file system.
func (m *mount) attributes() string {
	has := []string{"rw"}
	for o := range strings.SplitSeq(m.options, ",") {
		switch o {
		case "ro":
			has[0] = o
		case "nosuid", "nodev", "noexec":
			has = append(has, o)
		}
	}
	return strings.Join(has, ",")
}

// escape escapes characters that would end a field, as the kernel does.
func escape(s string) string {
	return strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`).Replace(s)
}
