// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import (
	"errors"
	"fmt"
)

// failures are the first of many errors: each line of a file may be one.
type failures struct {
	errs []error
	more int
}

const maxFailures = 100

func (f *failures) add(err error) {
	switch {
	case err == nil:
	case len(f.errs) == maxFailures:
		f.more++
	default:
		f.errs = append(f.errs, err)
	}
}

func (f *failures) join() error {
	if f.more == 0 {
		return errors.Join(f.errs...)
	}
	return errors.Join(append(f.errs, fmt.Errorf("and %d more errors", f.more))...)
}
