// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package drift reports a configuration whenever it changes, for callers that
// differ in how they learn when to look again.
package drift

import "context"

// Watch resolves, and again whenever wait returns. It reports the first
// configuration, each one that differs from the last according to diff, each new
// error, and the recovery from an error. It returns the error of ctx when that
// ends, an error of wait or report, and the error of the very first resolution if
// that fails.
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
