// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package snapshot describes a node as the calling thread sees it: files,
// mounts, links and sysctls, so that two moments can be compared. The demonstration and
// the tests use it to show that a node is as it was before.
//
// A [Snapshot] starts empty, and methods add objects: Node all that an agent may change,
// Machine all that tests must leave alone, the others one kind of object. Callers delete
// the objects that are expected to change.
//
// Files reads files whole: it is for the directories of a node, not for a whole disk.
package snapshot

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// Snapshot maps an object to a description of its state.
type Snapshot map[string]string

// Diff returns the differences, one line each, sorted.
func (s Snapshot) Diff(after Snapshot) []string {
	var lines []string
	for _, object := range slices.Sorted(maps.Keys(s)) {
		switch now, exists := after[object]; {
		case !exists:
			lines = append(lines, "gone: "+object)
		case now != s[object]:
			lines = append(lines, fmt.Sprintf("changed: %s: was %s, is %s", object, s[object], now))
		}
	}
	for _, object := range slices.Sorted(maps.Keys(after)) {
		if _, exists := s[object]; !exists {
			lines = append(lines, "new: "+object)
		}
	}
	return lines
}

// Node adds everything that an agent may change on a node.
func (s Snapshot) Node() error {
	return errors.Join(s.Files("/etc", "/opt", "/run", "/var"), s.Mounts(), s.Links(), s.Values("net/ipv4", "net/ipv6"))
}

// Machine adds everything that tests must not change on the machine that they run on.
func (s Snapshot) Machine() error {
	err := errors.Join(s.Unread("/etc", "/opt"), s.Mounts(), s.Links(), s.Values("kernel", "net/ipv4", "net/ipv6", "vm"))
	s.DropMoving()
	return err
}

// Files adds every file below dirs, and dirs themselves, with type, mode,
// owner and content. Other file systems mounted there are not entered.
func (s Snapshot) Files(dirs ...string) error { return s.files(dirs, sum) }

// Unread is like Files, but adds a file's size and modification time instead of its
// content, for directories that take long to read.
func (s Snapshot) Unread(dirs ...string) error { return s.files(dirs, changed) }

func (s Snapshot) files(dirs []string, content func(path string, info fs.FileInfo) (string, error)) error {
	var device uint64
	return walk(dirs, func(dir, path string, d fs.DirEntry) error {
		info, err := d.Info()
		if err != nil {
			return err
		}
		on, owner := stat(info)
		if path == dir {
			device = on
		}
		text := fmt.Sprint(info.Mode(), " ", owner)
		switch {
		case on != device:
			s["file "+path] = "on another device"
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case info.Mode().Type() == fs.ModeSymlink:
			var target string
			target, err = os.Readlink(path)
			text += " to " + target
		case info.Mode().IsRegular():
			var state string
			state, err = content(path, info)
			text += " " + state
		}
		if err == nil {
			s["file "+path] = text
		}
		return err
	})
}

// walk calls add for all that is below dirs, and for dirs themselves. What is not there, or
// was removed meanwhile, is left out.
func walk(dirs []string, add func(dir, path string, d fs.DirEntry) error) error {
	var errs []error
	for _, dir := range dirs {
		errs = append(errs, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil {
				err = add(dir, path, d)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}))
	}
	return errors.Join(errs...)
}

func sum(path string, _ fs.FileInfo) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return fmt.Sprintf("%x", sum.Sum(nil)[:8]), err
}

func changed(_ string, info fs.FileInfo) (string, error) {
	return fmt.Sprint(info.Size(), " ", info.ModTime()), nil
}

// Values adds the content of every file below the given directories of
// /proc/sys, such as "net/ipv4/conf". Unreadable ones are left out.
func (s Snapshot) Values(dirs ...string) error {
	var paths []string
	for _, dir := range dirs {
		paths = append(paths, filepath.Join("/proc/sys", dir))
	}
	return walk(paths, func(_, path string, d fs.DirEntry) error {
		if !d.Type().IsRegular() {
			return nil
		}
		if value, err := os.ReadFile(path); err == nil {
			s["sysctl "+path] = strings.TrimSpace(string(value))
		}
		return nil
	})
}

// Cgroups adds the cgroups below dir, where a hierarchy is mounted; none if it is
// missing. Their files, which depend on the running processes, are left out.
func (s Snapshot) Cgroups(dir string) error {
	return walk([]string{dir}, func(_, path string, d fs.DirEntry) error {
		if d.IsDir() {
			s["cgroup "+path] = "there"
		}
		return nil
	})
}

// Mounts adds the mounts of the calling thread's namespace, by mount point and
// place in the stack there.
func (s Snapshot) Mounts() error {
	mounts, err := mountinfo.Read()
	depth := map[string]int{}
	for _, m := range mounts {
		depth[m.Point]++
		// Without the ids of mounts and peer groups, which the kernel assigns anew.
		for i, tag := range m.Tags {
			m.Tags[i], _, _ = strings.Cut(tag, ":")
		}
		s[fmt.Sprintf("mount %s #%d", m.Point, depth[m.Point])] = fmt.Sprint(m.Root, m.Options, m.Tags, m.FSType, " ", m.Source, " ", m.Super)
	}
	return err
}

// Links adds the names of the network links that the calling thread sees.
func (s Snapshot) Links() error {
	raw, err := os.ReadFile("/proc/thread-self/net/dev")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(raw)) {
		if name, _, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			s["link "+name] = "there"
		}
	}
	return nil
}

// Lines adds each line of a tool's output.
func (s Snapshot) Lines(tool, says string) {
	for line := range strings.Lines(says) {
		s[tool+" "+strings.TrimSpace(line)] = "there"
	}
}

// DropSources removes the random part of the sources of the library's mounts.
func (s Snapshot) DropSources() {
	drawn := regexp.MustCompile(`slipway-([-a-z0-9]+:\S+:)?[a-z2-7]{16}`)
	for object, state := range s {
		s[object] = drawn.ReplaceAllString(state, "slipway-")
	}
}

// DropMoving removes values that the kernel itself keeps changing.
func (s Snapshot) DropMoving() {
	for object := range s {
		for _, moving := range []string{
			"kernel/random/", "kernel/ns_last_pid", "kernel/pty/nr", "/neigh/", "/route/", "nf_conntrack_count", "kernel/tainted",
		} {
			if strings.HasPrefix(object, "sysctl ") && strings.Contains(object, moving) {
				delete(s, object)
			}
		}
	}
}
