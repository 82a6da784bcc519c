// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/remedy"
)

// hint adds the missing capability to an error, unless the error already names it.
func hint(kind string, err error) error {
	switch kind {
	case kindFilter, kindClsact, kindXDP, kindTCX, kindNetkit, kindLink,
		kindRoute, kindRule, kindXFRMPolicy, kindXFRMState, kindNFT, kindNFTable, kindLegacy, kindIPSet:
		return remedy.Capabilities(err, "", remedy.NetAdmin)
	case kindCgroup:
		return remedy.Capabilities(err, "", remedy.NetAdmin, remedy.BPF)
	case kindMount, kindNetNS:
		return remedy.Capabilities(err, "", remedy.SysAdmin)
	}
	return remedy.File(err)
}

func notThere(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return err
}
