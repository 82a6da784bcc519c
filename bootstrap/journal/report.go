// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/remedy"
)

const (
	reportSuffix = ".last.json"
	maxReport    = 256 << 10 // bytes: a thousand steps with an error each
)

func (j *Journal) reportName() string { return j.options.Agent + reportSuffix }

// SaveReport stores, durably, the report of the last run, in place of the previous one:
// up to 256 KiB, whose content is not interpreted. If nothing is recorded, the report is
// not stored; it is removed with the journal. A plan's apply stores its report even then,
// in an otherwise empty directory, so that a failed apply can be seen.
func (j *Journal) SaveReport(report []byte) error { return j.saveReport(report, false) }

// saveReport is SaveReport. With alone, the report is stored even if nothing is recorded.
func (j *Journal) saveReport(report []byte, alone bool) error {
	if j == nil {
		return nil
	}
	if len(report) > maxReport {
		return fmt.Errorf("keep the report: it has %d bytes, and at most %d are kept", len(report), maxReport)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	d, err := j.openDir()
	made := false
	if d == nil && err == nil && alone {
		if d, made, err = j.makeDir(); err != nil {
			return nil // records there have failed because of that already
		}
	}
	if d == nil || err != nil {
		return err
	}
	defer d.Close()
	if l, err := j.refresh(d); err != nil || l.seen == nil && !alone {
		return err
	}
	if err = d.WriteFile(j.reportName(), 0o600, report); err != nil {
		err = fmt.Errorf("keep the report: %w", remedy.File(err))
		if made {
			err = errors.Join(err, j.parent.Remove(j.name))
		}
	}
	return err
}

// LastReport returns the report that SaveReport has stored, and its time. If there is
// none, when is the zero time.
func (j *Journal) LastReport() (report []byte, when time.Time, err error) {
	if j == nil {
		return nil, time.Time{}, nil
	}
	d, err := j.openDir()
	if d == nil || err != nil {
		return nil, time.Time{}, err
	}
	defer d.Close()
	if report, when, err = readReport(d, j.reportName()); err != nil {
		return nil, time.Time{}, fmt.Errorf("read the last report: %w", remedy.File(err))
	}
	return report, when, nil
}

func readReport(d *durable.Dir, name string) ([]byte, time.Time, error) {
	info, err := d.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, time.Time{}, nil
	}
	if err == nil {
		err = trusted(d.Path(name), func() (fs.FileInfo, error) { return info, nil })
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	report, err := d.ReadFile(name, maxReport)
	return report, info.ModTime(), err
}

// cutShort reports whether the last run could not store its report, or has left a partly
// written file.
func (j *Journal) cutShort() (bool, error) {
	if j == nil {
		return false, nil
	}
	d, err := j.openDir()
	if d == nil || err != nil {
		return false, err
	}
	defer d.Close()
	recorded, reported := false, false
	for name, err := range d.All() {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return false, nil // an uninstall has just removed it
		case err != nil:
			return false, fmt.Errorf("look at the state directory: %w", err)
		case durable.IsTemporary(name):
			return true, nil
		}
		recorded, reported = recorded || name == j.fileName(), reported || name == j.reportName()
	}
	return recorded && !reported, nil
}
