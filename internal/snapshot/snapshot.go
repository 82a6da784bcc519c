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
// Files reads files whole: it is for the folders of a node, not for a whole disk.
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
		switch now, there := after[object]; {
		case !there:
			lines = append(lines, "gone: "+object)
		case now != s[object]:
			lines = append(lines, fmt.Sprintf("changed: %s: was %s, is %s", object, s[object], now))
		}
	}
	for _, object := range slices.Sorted(maps.Keys(after)) {
		if _, there := s[object]; !there {
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
func (s Snapshot) Files(dirs ...string) error { return s.walk(dirs, describe) }

// Unread is like Files, but adds a file's size and modification time instead of its
// content, for folders that take long to read.
func (s Snapshot) Unread(dirs ...string) error { return s.walk(dirs, describeUnread) }

func (s Snapshot) walk(dirs []string, describe func(path string, info fs.FileInfo) (string, error)) error {
	var errs []error
	for _, dir := range dirs {
		root, err := os.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		errs = append(errs, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // it was removed meanwhile
			}
			if err != nil {
				return err
			}
			info, err := d.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			if !sameDevice(root, info) {
				s["file "+path] = "on another device"
				return skip(d)
			}
			s["file "+path], err = describe(path, info)
			return err
		}))
	}
	return errors.Join(errs...)
}

func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

func describe(path string, info fs.FileInfo) (string, error) {
	text := fmt.Sprintf("%s %s", info.Mode(), owner(info))
	switch {
	case info.Mode().Type() == fs.ModeSymlink:
		target, err := os.Readlink(path)
		return text + " to " + target, err
	case info.Mode().IsRegular():
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer f.Close()
		sum := sha256.New()
		_, err = io.Copy(sum, f)
		return fmt.Sprintf("%s %x", text, sum.Sum(nil)[:8]), err
	}
	return text, nil
}

func describeUnread(path string, info fs.FileInfo) (string, error) {
	if info.Mode().IsRegular() {
		return fmt.Sprintf("%s %s %d %v", info.Mode(), owner(info), info.Size(), info.ModTime()), nil
	}
	return describe(path, info)
}

// Values adds the content of every file below the given directories of
// /proc/sys, such as "net/ipv4/conf". Unreadable ones are left out.
func (s Snapshot) Values(dirs ...string) error {
	var errs []error
	for _, dir := range dirs {
		errs = append(errs, filepath.WalkDir(filepath.Join("/proc/sys", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return ignoreGone(err)
			}
			if value, err := os.ReadFile(path); err == nil {
				s["sysctl "+path] = strings.TrimSpace(string(value))
			}
			return nil
		}))
	}
	return errors.Join(errs...)
}

// Cgroups adds the cgroups below dir, where a hierarchy is mounted; none if it is
// missing. Their files, which depend on the running processes, are left out.
func (s Snapshot) Cgroups(dir string) error {
	return ignoreGone(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			s["cgroup "+path] = "there"
		}
		return ignoreGone(err)
	}))
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
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
