// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"fmt"
	"os"
)

// The extended attributes that are recorded: labels and access lists, which control access
// to a file, and the capabilities of a program. The kernel makes its own sums
// (security.ima, security.evm) anew; trusted.* belong to file systems, and user.* to
// programs, and grant no access.
const (
	xattrSELinux    = "security.selinux"
	xattrSmack      = "security.SMACK64"
	xattrACL        = "system.posix_acl_access"
	xattrCapability = "security.capability"
)

// mayHaveCapabilities returns an error for a program with capabilities that users other
// than root may write. While it is made, they could write into it after it has got its
// capabilities. If only root may write it, root has combined its capabilities and its
// content.
func mayHaveCapabilities(s State) error {
	if len(s.Xattrs[xattrCapability]) == 0 || s.UID == 0 && s.Mode&0o022 == 0 && os.Geteuid() <= 0 {
		return nil
	}
	return fmt.Errorf("it has %s, belongs to uid %d and has mode %04o, and is brought back only by root, and if only root may write it",
		xattrCapability, s.UID, s.Mode)
}
