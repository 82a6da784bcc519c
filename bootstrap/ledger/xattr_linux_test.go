// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/testns"
)

const (
	capability = "security.capability"
	acl        = "system.posix_acl_access"
	defaultACL = "system.posix_acl_default"
	selinux    = "security.selinux"
)

// netRaw is the attribute (version 2, effective) that gives a program CAP_NET_RAW.
func netRaw() []byte {
	value := binary.LittleEndian.AppendUint32(nil, 0x02000000|1)
	for _, word := range []uint32{1 << unix.CAP_NET_RAW, 0, 0, 0} {
		value = binary.LittleEndian.AppendUint32(value, word)
	}
	return value
}

// accessList is the access list of a file whose owner may read and write it, which user 1000
// may read, and no other user may access.
func accessList() []byte {
	value := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []struct {
		tag, perm uint16
		id        uint32
	}{{1, 6, 0xffffffff}, {2, 4, 1000}, {4, 0, 0xffffffff}, {0x10, 4, 0xffffffff}, {0x20, 0, 0xffffffff}} {
		value = binary.LittleEndian.AppendUint16(value, e.tag)
		value = binary.LittleEndian.AppendUint16(value, e.perm)
		value = binary.LittleEndian.AppendUint32(value, e.id)
	}
	return value
}

// setXattr sets an attribute, or skips the test if the file system has none.
func setXattr(t *testing.T, path, name string, value []byte) {
	t.Helper()
	err := unix.Lsetxattr(path, name, value, 0)
	if errors.Is(err, unix.ENOTSUP) {
		testns.SkipKernel(t, name+" in the file system of "+path)
	}
	require.NoError(t, err)
}

// xattr returns an attribute, or nil if the file does not have it.
func xattr(t *testing.T, path, name string) []byte {
	t.Helper()
	value := make([]byte, 4096)
	n, err := unix.Lgetxattr(path, name, value)
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	require.NoError(t, err)
	return value[:n]
}

// onEachFileSystem runs f in a directory of the machine's disk, and of a tmpfs.
func onEachFileSystem(t *testing.T, f func(t *testing.T, dir string)) {
	t.Run("disk", func(t *testing.T) { f(t, t.TempDir()) })
	t.Run("tmpfs", func(t *testing.T) {
		testns.Enter(t, testns.Mount)
		f(t, tmpfs(t))
	})
}

// tmpfs mounts a tmpfs in the test's own mount namespace.
func tmpfs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, ""))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// Labels, access lists and capabilities come back with the original.
func TestPLAN6_ExtendedAttributesComeBack(t *testing.T) {
	testns.Root(t)
	onEachFileSystem(t, func(t *testing.T, dir string) {
		for name, size := range map[string]int{"small": 10, "large": 10_000} {
			root := t.TempDir()
			book, path := opened(t, root), filepath.Join(dir, name)
			require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("x", size)), 0o640))
			attributes := map[string][]byte{acl: accessList(), capability: netRaw(), selinux: []byte("system_u:object_r:bin_t:s0\x00")}
			for name, value := range attributes {
				setXattr(t, path, name, value)
			}
			before := looksLike(t, path)
			for range 2 {
				require.NoError(t, apply(t, book, ledger.FileWant(path, 0o640, []byte("ours"))))
			}
			require.Nil(t, xattr(t, path, capability), "our file has none")
			require.NoError(t, undo(t, book))
			require.Equal(t, before, looksLike(t, path))
			for name, value := range attributes {
				require.Equal(t, value, xattr(t, path, name))
			}
			require.NoDirExists(t, filepath.Join(root, "state"))
		}
	})
}

// A restored file has its former attributes, and not those that its directory gives to new
// files.
func TestPLAN6_ARestoredFileHasNoAttributesThatItsDirectoryGives(t *testing.T) {
	testns.Root(t)
	onEachFileSystem(t, func(t *testing.T, root string) {
		book, dir := opened(t, t.TempDir()), filepath.Join(root, "dir")
		path, below := filepath.Join(dir, "file"), filepath.Join(dir, "below")
		require.NoError(t, os.Mkdir(dir, 0o755))
		require.NoError(t, os.WriteFile(path, []byte("was"), 0o644))
		setXattr(t, dir, defaultACL, accessList())
		wants, err := ledger.DirWants(below, 0o755)
		require.NoError(t, err)
		require.NoError(t, apply(t, book, append(wants, ledger.FileWant(path, 0o644, []byte("ours")))...))
		require.NotNil(t, xattr(t, path, acl), "the kernel gives it to new files")
		require.NoError(t, undo(t, book))
		require.Nil(t, xattr(t, path, acl))
		require.NoDirExists(t, below)
	})
}

// A program that changes our file's permissions has changed the file.
func TestPLAN6_AnAttributeThatIsAnotherIsAChange(t *testing.T) {
	testns.Root(t)
	onEachFileSystem(t, func(t *testing.T, dir string) {
		book, path := opened(t, t.TempDir()), filepath.Join(dir, "file")
		require.NoError(t, apply(t, book, ledger.FileWant(path, 0o644, []byte("ours"))))
		setXattr(t, path, capability, netRaw())
		require.ErrorIs(t, undo(t, book), ledger.ErrChanged)
		require.NoError(t, unix.Lremovexattr(path, capability))
		require.NoError(t, undo(t, book))
		require.NoFileExists(t, path)
	})
}

// A user who may write to a program with capabilities must not get them for another program:
// it does not come back, which a check says beforehand.
func TestSEC3_CapabilitiesComeBackOnlyWhereOnlyRootMayWrite(t *testing.T) {
	testns.Root(t)
	for name, spoil := range map[string]func(path string) error{
		"of another":   func(path string) error { return os.Chown(path, 1000, 0) },
		"of a group":   func(path string) error { return os.Chmod(path, 0o775) },
		"of everybody": func(path string) error { return os.Chmod(path, 0o757) },
	} {
		root := t.TempDir()
		book, path := opened(t, root), filepath.Join(root, "file")
		require.NoError(t, os.WriteFile(path, []byte("was"), 0o755))
		require.NoError(t, spoil(path))
		setXattr(t, path, capability, netRaw())
		want := ledger.FileWant(path, 0o755, []byte("ours"))
		look := checked(t, book, "s", ledger.Wants{List: []ledger.Want{want}})
		require.Contains(t, strings.Join(look.Advice, "\n"), "will not come back as it is: it has security.capability, belongs to uid ", name)
		require.NoError(t, apply(t, book, want))
		require.NoError(t, undo(t, book))
		require.Contains(t, looksLike(t, path), "ours", name)
		require.Nil(t, xattr(t, path, capability))
	}
}

// An attribute that cannot be set is an error that names it, and the file stays as it was
// left.
func TestPLAN7_AnAttributeThatCannotBeSetIsNamed(t *testing.T) {
	testns.Root(t)
	root, dir := t.TempDir(), t.TempDir()
	book, path := opened(t, root), filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(path, []byte("was"), 0o755))
	setXattr(t, path, capability, netRaw())
	require.NoError(t, apply(t, book, ledger.FileWant(path, 0o755, []byte("ours"))))
	testns.Enter(t, testns.Mount) // the test's own thread
	require.NoError(t, dropSetFCap())
	err := undo(t, book)
	require.ErrorIs(t, err, os.ErrPermission)
	require.ErrorContains(t, err, "set security.capability of ")
	require.ErrorContains(t, err, "CAP_SETFCAP")
	require.Contains(t, looksLike(t, path), "ours")
	require.Equal(t, []string{"file"}, namesIn(t, dir), "nothing else is left")
	status := statusOf(t, book)
	require.Len(t, status.Records, 1)
}

// dropSetFCap drops CAP_SETFCAP from the thread.
func dropSetFCap() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	data[0].Effective &^= 1 << unix.CAP_SETFCAP
	return unix.Capset(&header, &data[0])
}

// A file with an attribute too large to be kept is not replaced.
func TestSEC6_AttributesAreBounded(t *testing.T) {
	testns.Enter(t, testns.Mount)
	path := filepath.Join(tmpfs(t), "file")
	require.NoError(t, os.WriteFile(path, []byte("was"), 0o644))
	setXattr(t, path, selinux, []byte(strings.Repeat("x", 5000)))
	err := apply(t, opened(t, t.TempDir()), ledger.FileWant(path, 0o644, []byte("ours")))
	require.ErrorContains(t, err, "its security.selinux has more than 4096 bytes, which is too much to keep: move it away")
	require.Contains(t, looksLike(t, path), "was")
}
