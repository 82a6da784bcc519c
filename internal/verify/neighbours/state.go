// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package neighbours

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/filemode"
)

// State is the state of a node: its objects, and the state of each.
type State map[string]string

// diff lists the differences between s and after.
func (s State) diff(after State) (lines []string) {
	objects := slices.AppendSeq(slices.Collect(maps.Keys(s)), maps.Keys(after))
	slices.Sort(objects)
	for _, object := range slices.Compact(objects) {
		was, had := s[object]
		if now, has := after[object]; had != has || was != now {
			lines = append(lines, fmt.Sprintf("%s: was %s, is %s", object, describe(was, had), describe(now, has)))
		}
	}
	return lines
}

func describe(state string, is bool) string {
	if !is {
		return "missing"
	}
	return fmt.Sprintf("%q", state)
}

// lacks lists the parts of want that are not in s.
func (s State) lacks(want State) (lines []string) {
	for _, object := range slices.Sorted(maps.Keys(want)) {
		if now, has := s[object]; !has || now != want[object] {
			lines = append(lines, fmt.Sprintf("%s: %q is wanted, but it is %s", object, want[object], describe(now, has)))
		}
	}
	return lines
}

// addFiles adds the files of a node, except those of journals, and the settings of
// drop-ins. Mounts are left out.
func (s State) addFiles(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil || name == "." {
			return err
		}
		name = filepath.ToSlash(name)
		info, err := d.Info()
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(name, record):
			return fs.SkipDir
		case d.IsDir():
			if s["mount "+name] != "" {
				s["dir "+name] = "0755" // under the mount
				return fs.SkipDir
			}
			s["dir "+name] = fmt.Sprintf("%04o", filemode.Unix(info.Mode()))
			return nil
		}
		content, err := os.ReadFile(path)
		s["file "+name] = fmt.Sprintf("%04o %s", filemode.Unix(info.Mode()), content)
		if strings.HasPrefix(name, binDir) {
			s["plugin "+name] = "there"
		}
		if filepath.Ext(name) == ".conf" {
			s["settings "+name] = strings.Join(settings(string(content)), "\n")
		}
		return err
	})
}

// settings returns the lines of a drop-in without comments.
func settings(content string) (lines []string) {
	for line := range strings.Lines(content) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	return lines
}

// onBoot calls set for each setting of a node's drop-ins, in systemd's order.
func onBoot(root string, set func(key, value string) error) error {
	names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dropIns), "*.conf")) // sorted
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, line := range settings(string(content)) {
			key, value, _ := strings.Cut(line, "=")
			if err := set(strings.TrimSpace(strings.TrimPrefix(key, "-")), strings.TrimSpace(value)); err != nil {
				return err
			}
		}
	}
	return err
}

// files holds the files below a directory, unchanged.
type files map[string]file

type file struct {
	mode    fs.FileMode
	content string
	written time.Time // cniinstall uses it to distinguish its files from equal ones
}

// read adds the files below root.
func (all files) read(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		f := file{mode: info.Mode()}
		if info.Mode().IsRegular() {
			f.written = info.ModTime()
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			f.content = string(content)
		}
		name, err := filepath.Rel(root, path)
		all[name] = f
		return err
	})
}

// write recreates the files below root, which must be missing.
func (all files) write(root string) error {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		path, f, err := filepath.Join(root, name), all[name], error(nil)
		if f.mode.IsDir() {
			err = os.Mkdir(path, 0o700)
		} else {
			err = os.WriteFile(path, []byte(f.content), 0o600)
		}
		if err != nil {
			return err
		}
		if err := os.Chmod(path, f.mode); err != nil {
			return err
		}
		if f.written.IsZero() {
			continue
		}
		if err := os.Chtimes(path, f.written, f.written); err != nil {
			return err
		}
	}
	return nil
}

// original returns the files of a node before the first agent.
func original() files {
	const dir = fs.ModeDir | 0o755
	return files{
		".": {mode: dir}, "etc": {mode: dir}, "run": {mode: dir}, "var": {mode: dir}, "etc/sysctl.d": {mode: dir},
		"etc/theirs":                  {mode: 0o640, content: "theirs"},
		"etc/sysctl.d/10-theirs.conf": {mode: 0o644, content: "# theirs\n" + filter + " = 2\n"},
	}
}
