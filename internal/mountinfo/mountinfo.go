// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package mountinfo reads the list of a mount namespace's mounts, on any system that has
// the text. It takes time in proportion to their number; to find out whether one path is
// a mount, use statx(2).
package mountinfo

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Path is where the mounts that the calling thread sees are listed.
// /proc/self would be those of the main thread.
const Path = "/proc/thread-self/mountinfo"

// InitPath is where those of pid 1 are listed.
const InitPath = "/proc/1/mountinfo"

// Mount is a line of the list, see proc_pid_mountinfo(5).
type Mount struct {
	ID, Parent int
	Dev        string   // number of the device, such as "0:40"
	Root       string   // mounted directory of the file system; for cgroup2 as seen from the reader's cgroup namespace
	Point      string   // where it is mounted
	Options    []string // of the mount
	Tags       []string // such as "shared:1"
	FSType     string
	Source     string
	Super      string // options of the file system
}

// Whole reports whether a file system is mounted, and not one directory of it.
func (m Mount) Whole() bool { return m.Root == "/" }

// Shared reports whether it is in a peer group: mounts below it appear in others too.
func (m Mount) Shared() bool { return m.Group() != "" }

// Group returns the peer group as its tag, "shared:N", which means the same in
// all mount namespaces; empty if it is in none.
func (m Mount) Group() string {
	for _, tag := range m.Tags {
		if strings.HasPrefix(tag, "shared:") {
			return tag
		}
	}
	return ""
}

// Read lists the mounts that the calling thread sees, in the order of Parse.
func Read() ([]Mount, error) {
	f, err := os.Open(Path)
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	defer f.Close()
	return Parse(f)
}

// Parse reads the list. It is in the kernel's order: of several mounts on one
// point the last is visible.
func Parse(r io.Reader) ([]Mount, error) {
	var mounts []Mount
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20) // overlay lists its layers among the options
	for lines.Scan() {
		m, err := parse(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("mountinfo line %q: %w", lines.Text(), err)
		}
		mounts = append(mounts, m)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read mountinfo: %w", err)
	}
	return mounts, nil
}

func parse(line string) (Mount, error) {
	f := strings.Split(line, " ")
	dash := slices.Index(f, "-")
	if dash < 6 || len(f) < dash+4 {
		return Mount{}, errors.New("fields are missing")
	}
	id, err := strconv.Atoi(f[0])
	if err != nil {
		return Mount{}, err
	}
	parent, err := strconv.Atoi(f[1])
	if err != nil {
		return Mount{}, err
	}
	return Mount{
		ID: id, Parent: parent, Dev: f[2],
		Root: unescape(f[3]), Point: unescape(f[4]),
		Options: strings.Split(f[5], ","), Tags: f[6:dash:dash],
		FSType: unescape(f[dash+1]), Source: unescape(f[dash+2]), Super: f[dash+3],
	}, nil
}

// unescape decodes escapes such as \040, as the kernel writes blanks, tabs, line
// ends, backslashes and, in a type, number signs.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// On returns the mounts whose mount point is path, the visible one last.
func On(mounts []Mount, path string) []Mount {
	return slices.DeleteFunc(slices.Clone(mounts), func(m Mount) bool { return m.Point != path })
}

// Holding returns the mount that contains path, which is not a mount point itself.
func Holding(mounts []Mount, path string) (Mount, bool) {
	found := -1
	for n, m := range mounts {
		if Below(path, m.Point) && (found < 0 || len(m.Point) >= len(mounts[found].Point)) {
			found = n
		}
	}
	if found < 0 {
		return Mount{}, false
	}
	return mounts[found], true
}

// Below reports whether path is dir or below it; both are clean.
func Below(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
