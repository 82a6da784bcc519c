// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/remedy"
)

// xattrs reads the attributes of an open file or directory.
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
	n, err := fgetxattr(f, name, value)
	switch {
	case errors.Is(err, unix.ENODATA), errors.Is(err, unix.ENOTSUP):
		return nil, nil
	case errors.Is(err, unix.ERANGE), errors.Is(err, unix.E2BIG):
		return nil, fmt.Errorf("%s: its %s has more than %d bytes, which is too much to keep: move it away", f.Name(), name, maxXattr)
	case err != nil:
		return nil, &fs.PathError{Op: "read " + name + " of", Path: f.Name(), Err: err}
	}
	return bytes.Clone(value[:n]), nil
}

func fgetxattr(f *os.File, name string, value []byte) (n int, err error) {
	for {
		if n, err = unix.Fgetxattr(int(f.Fd()), name, value); err != unix.EINTR {
			return n, err
		}
	}
}

// dirXattrs is xattrs of a directory. It is empty for a directory that this process may
// not read.
func dirXattrs(d *durable.Dir, name string) (map[string][]byte, error) {
	dir, err := d.OpenDir(name)
	if errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return xattrs(dir.File())
}

// setXattrs gives an open file exactly the attributes of want, unless that is nil: then
// they are unknown. A label from the kernel that want lacks stays.
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
			err = fsetxattr(f, name, value)
		case now != nil && (name == xattrACL || name == xattrCapability): // inherited from the directory
			err = unix.Fremovexattr(int(f.Fd()), name)
		}
		if err != nil {
			return remedy.Add(&fs.PathError{Op: "set " + name + " of", Path: f.Name(), Err: err}, xattrRemedy(name))
		}
	}
	return nil
}

func fsetxattr(f *os.File, name string, value []byte) (err error) {
	for {
		if err = unix.Fsetxattr(int(f.Fd()), name, value, 0); err != unix.EINTR {
			return err
		}
	}
}

// xattrRemedy adds the permission needed to set an attribute.
func xattrRemedy(name string) string {
	switch name {
	case xattrCapability:
		return "it needs CAP_SETFCAP, and a file system with extended attributes"
	case xattrSELinux, xattrSmack:
		return "it needs CAP_MAC_ADMIN for a label that the policy does not know, CAP_SYS_ADMIN where there is no policy, and a file system with extended attributes"
	}
	return "it needs a file system with access control lists"
}

// unchangedSince reports whether neither the content of a file nor its attributes were
// changed between two looks.
func unchangedSince(before, now fs.FileInfo) bool {
	b, okB := before.Sys().(*syscall.Stat_t)
	n, okN := now.Sys().(*syscall.Stat_t)
	return okB && okN && b.Ctim == n.Ctim && b.Mtim == n.Mtim && b.Size == n.Size
}
