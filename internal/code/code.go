// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package code gives errors stable codes, such as "sysctl.read-only": names of causes by
// which an operator can group the failures of many nodes, whatever their texts. [Table]
// lists them all. bootstrap.Code finds the code of an error; their texts, errors.Is
// and errors.As are unaffected.
//
// It links only the standard library and needs no capability. It is for causes worth
// distinguishing: do not use it for every message.
package code

import (
	"errors"
	"fmt"
)

// Error is an error with a code. Its text is that of the error that it wraps.
type Error struct {
	code string
	err  error
}

// Error returns the text, without the code.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the error that was given the code.
func (e *Error) Unwrap() error { return e.err }

// Code returns the code.
func (e *Error) Code() string { return e.code }

// New returns an error with a code and a text, distinct from all others.
func New(code, text string) error { return &Error{code, errors.New(text)} }

// Wrap returns err with a code. If err is nil, or has a code already, which is nearer
// to the cause, Wrap returns err itself.
func Wrap(code string, err error) error {
	if err == nil || Of(err) != "" {
		return err
	}
	return &Error{code, err}
}

// Errorf returns the error of [fmt.Errorf] with a code, unless an error that it wraps
// has one.
func Errorf(code, format string, args ...any) error {
	return Wrap(code, fmt.Errorf(format, args...))
}

// Of returns the code of the first error in err's tree that has one, in the order of
// [errors.As]; it is empty if none has. A string that does not have the form of a code is
// ignored: a method of this name may be another library's.
func Of(err error) string {
	if err == nil {
		return ""
	}
	if coder, ok := err.(interface{ Code() string }); ok && isCode(coder.Code()) {
		return coder.Code()
	}
	switch wrapper := err.(type) {
	case interface{ Unwrap() error }:
		return Of(wrapper.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range wrapper.Unwrap() {
			if code := Of(err); code != "" {
				return code
			}
		}
	}
	return ""
}

// maxCode bounds a code, so that it can be a label.
const maxCode = 63

// isCode reports whether s has the form PACKAGE.WHAT, of small letters and, in WHAT,
// digits and single dashes.
func isCode(s string) bool {
	if len(s) > maxCode {
		return false
	}
	dots, last := 0, byte('.')
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9' && dots > 0:
		case c == '.' && dots == 0 && last != '.':
			dots++
		case c == '-' && dots > 0 && last != '-' && last != '.':
		default:
			return false
		}
		last = c
	}
	return dots == 1 && last != '.' && last != '-'
}
