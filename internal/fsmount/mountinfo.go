// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Info is a line of mountinfo, see proc_pid_mountinfo(5).
type Info struct {
	ID, Parent int
	Root       string // directory of the file system that is mounted; for cgroup2 as the reader's cgroup namespace sees it
	Point      string
	Options    []string // of the mount
	Shared     bool     // in a peer group: what is mounted below appears in others too
	FSType     string
	Source     string // what was named when it was mounted
}

// Whole reports whether a file system is mounted, and not one directory of it.
func (i Info) Whole() bool { return i.Root == "/" }

// Mounts lists the mounts that the calling thread sees, in the kernel's order:
// of several on one point the last is visible. It takes time in proportion to
// their number.
func Mounts(k Kernel) ([]Info, error) {
	infos, err := readMounts(k, MountinfoPath)
	if !errors.Is(err, fs.ErrNotExist) {
		return infos, err
	}
	// A /proc of another pid namespace, as in a node that was entered from
	// outside: its pid 1 tells the same, if it sees the thread's root.
	infos, oneErr := readMounts(k, "/proc/1/mountinfo")
	_, _, root, statErr := k.Stat("/")
	if oneErr != nil || statErr != nil || !slices.ContainsFunc(infos, func(i Info) bool { return i.is(root) }) {
		return nil, err
	}
	return infos, nil
}

func readMounts(k Kernel, path string) ([]Info, error) {
	f, err := k.Open(path)
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	defer f.Close()
	return ParseMounts(f)
}

// ParseMounts reads the format of proc_pid_mountinfo(5).
func ParseMounts(r io.Reader) ([]Info, error) {
	var infos []Info
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20) // overlay lists its layers among the options
	for lines.Scan() {
		i, err := parseMount(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("mountinfo line %q: %w", lines.Text(), err)
		}
		infos = append(infos, i)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read mountinfo: %w", err)
	}
	return infos, nil
}

func parseMount(line string) (Info, error) {
	f := strings.Split(line, " ")
	dash := slices.Index(f, "-")
	if dash < 6 || len(f) < dash+4 {
		return Info{}, errors.New("fields are missing")
	}
	id, err := strconv.Atoi(f[0])
	if err != nil {
		return Info{}, err
	}
	parent, err := strconv.Atoi(f[1])
	if err != nil {
		return Info{}, err
	}
	return Info{
		ID: id, Parent: parent,
		Root: unescape(f[3]), Point: unescape(f[4]),
		Options: strings.Split(f[5], ","),
		Shared:  slices.ContainsFunc(f[6:dash], func(tag string) bool { return strings.HasPrefix(tag, "shared:") }),
		FSType:  unescape(f[dash+1]),
		Source:  unescape(f[dash+2]),
	}, nil
}

// unescape decodes \040 and the like, as the kernel writes blanks, tabs, line
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

// On returns the mounts of infos whose mount point is path, the visible one last.
func On(infos []Info, path string) []Info {
	return slices.DeleteFunc(slices.Clone(infos), func(i Info) bool { return i.Point != path })
}

// Holding returns the mount that path, which is itself no mount point, is in.
func Holding(infos []Info, path string) (Info, bool) {
	found := -1
	for n, i := range infos {
		if below(path, i.Point) && (found < 0 || len(i.Point) >= len(infos[found].Point)) {
			found = n
		}
	}
	if found < 0 {
		return Info{}, false
	}
	return infos[found], true
}

// is reports whether i has the identity that [Kernel].Stat told.
func (i Info) is(identity string) bool {
	id, _, _ := strings.Cut(identity, " ")
	return id == fmt.Sprintf("id=%d", i.ID)
}

func below(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
