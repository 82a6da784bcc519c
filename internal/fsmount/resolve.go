// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package fsmount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/internal/durable"
)

// maxLinks is how many symbolic links the kernel follows in one path.
const maxLinks = 40

// Resolve returns the place that path leads to, as the kernel would walk it: absolute,
// without symbolic links, "." or "..". Any final part of the path may be missing, also
// behind a dangling link. A link is followed under the condition of [durable.OpenDir].
func Resolve(path string) (string, error) {
	if path == "" {
		return "", errors.New("empty path")
	}
	if !filepath.IsAbs(path) {
		wd, err := os.Getwd()
		if err != nil {
			return "", fmt.Errorf("resolve %s: %w", path, err)
		}
		path = wd + string(filepath.Separator) + path // not Join, which drops ".." unseen
	}
	done, rest := top(path)
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == "." {
			continue
		}
		if name == ".." {
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, name)
		target, err := readlink(next)
		switch {
		case err != nil:
			return "", fmt.Errorf("resolve %s: %w", path, err)
		case target == "":
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("resolve %s: %s: more than %d symbolic links", path, next, maxLinks)
		}
		if filepath.IsAbs(target) {
			done, _ = top(target)
		}
		rest = append(elements(target), rest...)
	}
	return done, nil
}

// readlink returns the target of path, "" if it is not a link or does not exist.
func readlink(path string) (target string, err error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().Type() != fs.ModeSymlink {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	err = durable.In(path, func(d *durable.Dir, name string) (err error) {
		target, err = d.Follow(name)
		return err
	})
	return target, err
}

// top splits an absolute path into its root and its elements.
func top(path string) (root string, rest []string) {
	return filepath.VolumeName(path) + string(filepath.Separator), elements(path)
}

func elements(path string) []string {
	return strings.FieldsFunc(path[len(filepath.VolumeName(path)):], func(r rune) bool {
		return r < 0x80 && os.IsPathSeparator(uint8(r))
	})
}
