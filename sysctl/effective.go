// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/input"
)

// systemdDirs are the directories that systemd reads, the one with the highest
// priority first. If /lib is not /usr/lib, /lib/sysctl.d comes last.
func systemdDirs() []string {
	return []string{"/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"}
}

// Effective returns the settings that systemd-sysctl takes from the .conf files in
// dirs, in the order in which it would apply them (sysctl.d(5)). Files are read in
// the order of their names, whichever directory they are in. Of two files with the
// same name, the one in the earlier directory counts, even if it is empty or a link
// to /dev/null. Of two lines for the same key, the later one counts. Globs are not
// expanded.
//
// Without dirs it reads /etc, /run, /usr/local/lib, /usr/lib and /lib, each with
// /sysctl.d. Lines and files that cannot be read are left out, as by systemd, and
// reported in the joined error. A missing directory counts as empty.
func Effective(dirs ...string) ([]Assignment, error) {
	if len(dirs) == 0 {
		dirs = systemdDirs()
	}
	return effective(context.Background(), dirs, "", nil)
}

// maxSettings bounds the settings of all files together: distributions and
// administrators have some hundreds.
const maxSettings = 20_000

// effective takes planned as the content of the file at path, which need not exist
// yet.
func effective(ctx context.Context, dirs []string, path string, planned []byte) ([]Assignment, error) {
	files, err := confFiles(ctx, dirs, path)
	var errs failures
	errs.add(err)
	var as []Assignment
	for _, file := range files {
		content := planned
		if file != path {
			if content, err = input.ReadFile(ctx, file, input.MaxSysctl); err != nil {
				errs.add(err)
				continue
			}
		}
		more, err := parse(bytes.NewReader(content), file)
		if err != nil {
			errs.add(fmt.Errorf("%s: %w", file, err))
		}
		if len(as)+len(more) > maxSettings {
			errs.add(fmt.Errorf("%s: there are more than %d settings up to here, and the rest is left out", file, maxSettings))
			break
		}
		as = append(as, more...)
	}
	as, err = override(as)
	errs.add(err)
	return as, errs.join()
}

// confFiles lists the files that count, by name. The file at path is assumed to
// exist.
func confFiles(ctx context.Context, dirs []string, path string) ([]string, error) {
	byName := map[string]string{}
	masked := map[string]bool{}
	var errs failures
	for _, dir := range dirs {
		if path != "" && filepath.Dir(path) == filepath.Clean(dir) {
			claim(byName, masked, path)
		}
		names, err := input.ReadNames(ctx, dir, func(name string) bool { return strings.HasSuffix(name, ".conf") && name[0] != '.' })
		if !errors.Is(err, fs.ErrNotExist) {
			errs.add(err)
		}
		for _, name := range names {
			errs.add(consider(byName, masked, filepath.Join(dir, name)))
		}
	}
	var files []string
	for _, file := range byName {
		files = append(files, file)
	}
	slices.SortFunc(files, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })
	return files, errs.join()
}

func claim(byName map[string]string, masked map[string]bool, file string) {
	if name := filepath.Base(file); byName[name] == "" && !masked[name] {
		byName[name] = file
	}
}

// consider takes file, unless one of the same name has been taken. An empty file
// masks later ones.
func consider(byName map[string]string, masked map[string]bool, file string) error {
	name := filepath.Base(file)
	if byName[name] != "" || masked[name] {
		return nil
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist): // a link to nothing
		return nil
	case err != nil:
		return err
	case info.Mode().IsRegular() && info.Size() > 0:
		claim(byName, masked, file)
	case info.Mode().IsRegular() || isDevNull(file):
		masked[name] = true
	}
	return nil
}

func isDevNull(file string) bool {
	target, err := filepath.EvalSymlinks(file)
	return err == nil && target == os.DevNull
}
