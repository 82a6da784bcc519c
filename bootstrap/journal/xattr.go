// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"fmt"
	"os"
)

// The extended attributes that belong to a State: the labels and the access lists that
// control access to a file, and the capabilities of a program. Others are left out:
// security.ima and security.evm are the kernel's own sums of a file, which it makes anew;
// trusted.* belong to file systems, and user.* to programs, and grant no access.
const (
	xattrSELinux    = "security.selinux"
	xattrSmack      = "security.SMACK64"
	xattrACL        = "system.posix_acl_access"
	xattrDefaultACL = "system.posix_acl_default" // of directories
	xattrCapability = "security.capability"
)

// xattrNames are in the order in which they are set: capabilities last, when no other
// process can have the file open.
var xattrNames = []string{xattrSELinux, xattrSmack, xattrACL, xattrDefaultACL, xattrCapability}

// maxXattr bounds the value of one, in bytes: an access list of about 500 users.
const maxXattr = 4 << 10

func (s State) hasCapabilities() bool { return len(s.Xattrs[xattrCapability]) > 0 }

// mayComeBack returns an error for a file with capabilities that users other than root
// may write. While it is being restored, they could map it into memory, and write a
// program of theirs into it after it got its capabilities, without the kernel removing
// those. If only root may write the file, root has combined its capabilities and content:
// the journal, which is root's too, grants nothing new, and a user who could write to the
// journal needs no such file.
func (s State) mayComeBack() error {
	if !s.hasCapabilities() || s.UID == 0 && s.Mode&0o022 == 0 && os.Geteuid() <= 0 {
		return nil
	}
	return fmt.Errorf("it has %s, belongs to uid %d and has mode %04o: it is brought back only by root, and if only root may write it (move it away, or take its capabilities with setcap -r)",
		xattrCapability, s.UID, s.Mode)
}
