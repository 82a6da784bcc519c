// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package drift tells of a configuration each time that it differs, for those who
// know by different means when to look again.
package drift

import "context"

// Watch resolves, and again each time that wait returns. It reports the first
// configuration, each that differs from the last by diff, an error that is not the
// last one, and that such an error is over. It returns when ctx ends, with its
// error; when wait or report returns an error, with that; and when the very first
// resolution fails.
func Watch[Config, Change any](ctx context.Context, resolve func() (*Config, error), wait func() error,
	diff func(old, now *Config) []Change, report func(*Config, []Change, error) error) error {
	var last *Config
	trouble := ""
	for {
		now, err := resolve()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var changes []Change
		news := false
		switch {
		case err != nil && last == nil:
			return err
		case err != nil:
			news, trouble = err.Error() != trouble, err.Error()
		default:
			changes = diff(last, now)
			news = last == nil || trouble != "" || len(changes) > 0
			last, trouble = now, ""
		}
		if news {
			if err := report(last, changes, err); err != nil {
				return err
			}
		}
		if err := wait(); err != nil {
			return err
		}
	}
}
