// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"errors"
	"fmt"

	"github.com/slipway-dev/slipway/internal/remedy"
)

// errOther says that another object is at the place of the one that was listed.
var errOther = errors.New("another one is there by now; left as it is")

// hint adds to an error what is missing, unless that is said already.
func hint(kind string, err error) error {
	switch kind {
	case kindFilter, kindClsact, kindXDP, kindTCX, kindNetkit, kindLink,
		kindRoute, kindRule, kindXFRMPolicy, kindXFRMState, kindNFT, kindLegacy, kindIPSet:
		return remedy.Capabilities(err, "", remedy.NetAdmin)
	case kindCgroup:
		return remedy.Capabilities(err, "", remedy.NetAdmin, remedy.BPF)
	case kindMount, kindNetNS:
		return remedy.Capabilities(err, "", remedy.SysAdmin)
	}
	return remedy.File(err)
}

// errorSet joins errors, each text once, and the first of many: thousands of
// links or files fail alike.
type errorSet struct {
	seen map[string]bool
	errs []error
	more int
}

// maxErrors is how many errors are told apart.
const maxErrors = 100

func (e *errorSet) add(err error) {
	if err == nil || e.seen[err.Error()] {
		return
	}
	if len(e.errs) == maxErrors {
		e.more++
		return
	}
	if e.seen == nil {
		e.seen = map[string]bool{}
	}
	e.seen[err.Error()] = true
	e.errs = append(e.errs, err)
}

func (e *errorSet) join() error {
	if e.more > 0 {
		return errors.Join(append(e.errs, fmt.Errorf("and %d more errors", e.more))...)
	}
	return errors.Join(e.errs...)
}
