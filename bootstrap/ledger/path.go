// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/durable"
)

// canonicalPath returns the path without symbolic links on the way. Directories that do not
// exist yet keep their names, and so does the last element. A link that another user could
// have put there is an error.
func canonicalPath(path string) (string, error) {
	path = filepath.Clean(path)
	rest := []string{filepath.Base(path)}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		resolved, err := realPath(dir)
		if err == nil {
			slices.Reverse(rest)
			return filepath.Join(append([]string{resolved}, rest...)...), nil
		}
		if !isGone(err) || dir == filepath.Dir(dir) {
			return path, err
		}
		rest = append(rest, filepath.Base(dir))
	}
}

// realPath returns the name without links of a directory that may be opened.
func realPath(dir string) (string, error) {
	d, err := durable.OpenDir(dir)
	if err != nil {
		return "", err
	}
	defer d.Close()
	return d.RealPath()
}

// ownsPath returns an error for a path that no agent can have made a file or directory at.
func ownsPath(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == filepath.Dir(path) {
		return errors.New("it is not an absolute, clean path below the root")
	}
	for _, system := range []string{"/proc", "/sys", "/dev"} {
		if path == system || strings.HasPrefix(path, system+"/") && !strings.HasPrefix(path, "/dev/shm/") {
			return fmt.Errorf("it lies below %s", system)
		}
	}
	return nil
}

// endsWithBoot reports whether the nearest directory above a path, that exists, is in
// memory.
func endsWithBoot(path string) bool {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		d, err := durable.OpenDir(dir)
		if isGone(err) && dir != filepath.Dir(dir) {
			continue
		}
		if err != nil {
			return false
		}
		defer d.Close()
		volatile, err := d.InMemory()
		return volatile && err == nil
	}
}
