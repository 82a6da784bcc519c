// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"bytes"
	"context"
	"fmt"

	"github.com/slipway-dev/slipway/internal/dropin"
	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/input"
)

// systemdDirs are the directories that systemd reads, the one with the highest
// priority first. If /lib is not /usr/lib, /lib/sysctl.d comes last. systemd also
// reads the credential sysctl.extra, which machines are rarely given, and procps
// /etc/sysctl.conf: neither is looked at.
func systemdDirs() []string {
	return []string{"/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"}
}

// maxSettings bounds the settings of all files together: distributions and
// administrators have some hundreds.
const maxSettings = 20_000

// effective returns the settings that systemd-sysctl takes from the .conf files in
// dirs, in the order in which it would apply them (sysctl.d(5)). Files are read in
// the order of their names, whichever directory they are in. Of two files with the
// same name, the one in the earlier directory counts, even if it is empty or there is
// nothing to read: a folder, or a link to a folder, to /dev/null or to nothing. Of two
// lines for the same key, the later one counts. Globs are not expanded.
//
// It takes planned as the content of the file at path, which need not exist yet. Lines
// and files that cannot be read are left out, as by systemd, and reported in the joined
// error. It also returns a line for each file that systemd may read otherwise. A
// missing directory counts as empty.
func effective(ctx context.Context, dirs []string, path string, planned []byte) (as []assignment, odd []string, err error) {
	files, err := dropin.Files(ctx, dirs, path)
	var errs failure.Set
	errs.Add(err)
	for _, file := range files {
		content := planned
		if file != path {
			if content, err = dropin.Read(ctx, file, input.MaxSysctl); err != nil {
				errs.Add(err)
				continue
			}
		}
		more, what, err := parse(bytes.NewReader(content), file)
		if err != nil {
			errs.Add(fmt.Errorf("%s: %w", file, err))
		}
		if what != "" && len(odd) < failure.Most {
			odd = append(odd, what)
		}
		if len(as)+len(more) > maxSettings {
			errs.Add(fmt.Errorf("%s: there are more than %d settings up to here, and the rest is left out", file, maxSettings))
			break
		}
		as = append(as, more...)
	}
	as, err = override(as)
	errs.Add(err)
	return as, odd, errs.Join()
}
