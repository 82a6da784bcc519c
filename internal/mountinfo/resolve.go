// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package mountinfo

import "path/filepath"

// Resolve follows the symbolic links of as much of path as exists.
func Resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for dir, rest := path, ""; ; dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest), nil
		}
		if dir == filepath.Dir(dir) {
			return path, nil
		}
	}
}
