// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/remedy"
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

// xattrNames are in the order in which they are set: capabilities last, when no other
// process can have the file open.
var xattrNames = []string{xattrSELinux, xattrSmack, xattrACL, xattrCapability}

// maxXattr bounds the value of one, in bytes: an access list of about 500 users.
const maxXattr = 4 << 10

// xattrs reads the attributes of an open file.
func xattrs(f *os.File) (map[string][]byte, error) {
	all := map[string][]byte{}
	for _, name := range xattrNames {
		value, err := xattr(f, name)
		if err != nil {
			return nil, err
		}
		if value != nil {
			all[name] = value
		}
	}
	return all, nil
}

// xattr returns nil if the file has no such attribute.
func xattr(f *os.File, name string) ([]byte, error) {
	value := make([]byte, maxXattr)
	n, err := 0, error(unix.EINTR)
	for err == unix.EINTR {
		n, err = unix.Fgetxattr(int(f.Fd()), name, value)
	}
	switch {
	case errors.Is(err, unix.ENODATA), errors.Is(err, unix.ENOTSUP):
		return nil, nil
	case errors.Is(err, unix.ERANGE), errors.Is(err, unix.E2BIG):
		return nil, fmt.Errorf("its %s has more than %d bytes, which is too much to keep: move it away", name, maxXattr)
	case err != nil:
		return nil, &fs.PathError{Op: "read " + name + " of", Path: f.Name(), Err: err}
	}
	return bytes.Clone(value[:n]), nil
}

// setXattrs gives an open file exactly these attributes, unless they are nil: not known. A
// label that the kernel has given it, and that is not among them, stays.
func setXattrs(f *os.File, want map[string][]byte) error {
	if want == nil {
		return nil
	}
	for _, name := range xattrNames {
		now, err := xattr(f, name)
		if err != nil {
			return err
		}
		value, wanted := want[name]
		switch {
		case wanted && now != nil && bytes.Equal(now, value):
		case wanted:
			err = setXattr(f, name, value)
		case now != nil && (name == xattrACL || name == xattrCapability): // inherited from the directory
			err = unix.Fremovexattr(int(f.Fd()), name)
		}
		if err != nil {
			return remedy.Add(&fs.PathError{Op: "set " + name + " of", Path: f.Name(), Err: err},
				"it needs CAP_SETFCAP or CAP_MAC_ADMIN, and a file system with extended attributes")
		}
	}
	return nil
}

func setXattr(f *os.File, name string, value []byte) error {
	err := error(unix.EINTR)
	for err == unix.EINTR {
		err = unix.Fsetxattr(int(f.Fd()), name, value, 0)
	}
	return err
}

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
