// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"errors"

	"golang.org/x/sys/unix"
)

// errOther says that another object is at the place of the one that was listed.
var errOther = errors.New("another one is there by now; left as it is")

// hinted is an error that says what is missing.
type hinted struct {
	error
	missing string
}

func (h hinted) Error() string { return h.error.Error() + " (" + h.missing + ")" }

func (h hinted) Unwrap() error { return h.error }

// hint adds to an error what is missing, unless that is said already.
func hint(kind string, err error) error {
	if said := new(hinted); errors.As(err, said) {
		return err
	}
	denied := errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES)
	switch {
	case errors.Is(err, unix.EROFS):
		return hinted{err, "the file system is mounted read-only"}
	case !denied:
		return err
	}
	switch kind {
	case kindFilter, kindClsact, kindXDP, kindTCX, kindNetkit, kindLink,
		kindRoute, kindRule, kindXFRMPolicy, kindXFRMState, kindNFT, kindLegacy, kindIPSet:
		return hinted{err, "needs CAP_NET_ADMIN"}
	case kindCgroup:
		return hinted{err, "needs CAP_NET_ADMIN and CAP_BPF"}
	case kindMount, kindNetNS:
		return hinted{err, "needs CAP_SYS_ADMIN"}
	}
	return hinted{err, "needs to be the owner, or CAP_DAC_OVERRIDE and CAP_FOWNER"}
}

// errorSet joins errors, each text once: thousands of links fail alike.
type errorSet struct {
	seen map[string]bool
	errs []error
}

func (e *errorSet) add(err error) {
	if err == nil || e.seen[err.Error()] {
		return
	}
	if e.seen == nil {
		e.seen = map[string]bool{}
	}
	e.seen[err.Error()] = true
	e.errs = append(e.errs, err)
}

func (e *errorSet) join() error { return errors.Join(e.errs...) }
