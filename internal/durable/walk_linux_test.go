// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package durable_test

import (
	"cmp"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/durable"
	"github.com/slipway-dev/slipway/internal/testns"
)

const stranger = 65534 // a user who is neither root nor this process's

// A link is followed only if only root or the caller can have put it there.
func TestSEC1_LinksOnTheWay(t *testing.T) {
	testns.Root(t)
	for name, tc := range map[string]struct {
		mode     os.FileMode // of the directory that holds the link
		dir      int         // its owner
		group    int         // its group
		link     int         // the link's owner
		followed bool
	}{
		"root's, in root's directory":                   {0o755, 0, 0, 0, true},
		"root's, where root's group may write":          {0o775, 0, 0, 0, true},
		"root's, where another group may write":         {0o775, 0, stranger, 0, false},
		"root's, in a world-writable directory":         {0o777, 0, 0, 0, false},
		"root's, in a sticky directory":                 {0o777 | os.ModeSticky, 0, 0, 0, true},
		"a stranger's, in a sticky directory":           {0o777 | os.ModeSticky, 0, 0, stranger, false},
		"a stranger's, in root's directory":             {0o755, 0, 0, stranger, false},
		"root's, in a stranger's directory":             {0o755, stranger, 0, 0, false},
		"root's, in a stranger's directory, sticky too": {0o777 | os.ModeSticky, stranger, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, "dir")
			require.NoError(t, os.Mkdir(filepath.Join(root, "elsewhere"), 0o755))
			require.NoError(t, os.Mkdir(dir, 0o755))
			require.NoError(t, os.Symlink("../elsewhere", filepath.Join(dir, "link")))
			require.NoError(t, os.Lchown(filepath.Join(dir, "link"), tc.link, 0))
			require.NoError(t, os.Chown(dir, tc.dir, tc.group))
			require.NoError(t, os.Chmod(dir, tc.mode))

			err := durable.In(dir+"/link/below", func(d *durable.Dir, name string) error { return mkdir(d, name) })
			if tc.followed {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, durable.ErrUntrusted)
				require.ErrorContains(t, err, `"link"`)
			}
			require.Equal(t, tc.followed, exists(filepath.Join(root, "elsewhere/below")))
		})
	}
}

// A pod may put a link into a directory that it shares with us which leads, by the
// root of another process, into the host.
func TestSEC1_ALinkOfOthersThroughARootIsRefused(t *testing.T) {
	testns.Root(t)
	dir := t.TempDir()
	for _, name := range []string{"shared", "host"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "host", "file"), []byte("theirs"), 0o644))
	link := filepath.Join(dir, "shared", "link")
	for _, root := range []string{"/proc/1/root", "/proc/self/root", "/proc/thread-self/root"} {
		require.NoError(t, os.Symlink(root+filepath.Join(dir, "host"), link))
		require.NoError(t, os.Chown(filepath.Dir(link), stranger, stranger))
		require.ErrorIs(t, durable.WriteFile(filepath.Join(link, "file"), 0o644, []byte("ours")), durable.ErrUntrusted, root)
		require.NoError(t, os.Remove(link))
	}
	content, err := os.ReadFile(filepath.Join(dir, "host", "file"))
	require.NoError(t, err)
	require.Equal(t, "theirs", string(content))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestSEC1_PathsAreWalkedAsTheKernelWould(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(root+"/a/b/c", 0o755))
	for link, target := range map[string]string{
		"/absolute": root + "/a/b", "/relative": "a/b", "/up": "a/b/../..", "/chain": "relative/c", "/dangling": "nowhere", "/loop": "loop", "/file/x": "",
	} {
		if target == "" {
			require.NoError(t, os.WriteFile(root+"/file", nil, 0o600))
			continue
		}
		require.NoError(t, os.Symlink(target, root+link))
	}
	for path, want := range map[string]string{
		"/absolute/c": "/a/b/c", "/relative": "/a/b", "/up/a": "/a", "/chain": "/a/b/c", "/a/./b//c/../c": "/a/b/c", "/a/b/c/../../..": "",
	} {
		d, err := durable.OpenDir(root + path)
		require.NoError(t, err, path)
		got, err := d.Stat()
		require.NoError(t, err)
		is, err := os.Stat(root + want)
		require.NoError(t, err)
		require.True(t, os.SameFile(is, got), path)
		require.NoError(t, d.Close())
	}
	for path, want := range map[string]error{"/dangling": unix.ENOENT, "/loop": unix.ELOOP, "/file": unix.ENOTDIR, "/file/x": unix.ENOTDIR, "/missing": unix.ENOENT} {
		_, err := durable.OpenDir(root + path)
		require.ErrorIs(t, err, want, path)
		require.ErrorContains(t, err, path)
	}
	t.Chdir(root)
	d, err := durable.OpenDir("relative/c")
	require.NoError(t, err)
	require.NoError(t, d.Close())
	d, err = durable.OpenDir("/proc/self/root" + root) // a link that leads to a directory, not to a name
	require.NoError(t, err)
	require.NoError(t, d.Close())
}

func TestSEC1_TheLastElementIsNeverFollowed(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Mkdir(root+"/real", 0o755))
	require.NoError(t, os.WriteFile(root+"/secret", []byte("secret"), 0o600))
	require.NoError(t, os.Symlink("real", root+"/dir"))
	require.NoError(t, os.Symlink("secret", root+"/file"))
	d := open(t, root)
	_, err := d.Open("file")
	require.ErrorContains(t, err, "not a regular file")
	_, err = d.ReadFile("file", 1000)
	require.Error(t, err)
	_, err = d.OpenDir("dir")
	require.ErrorIs(t, err, unix.ENOTDIR)
	for _, name := range []string{"", ".", "..", "a/b", "/etc/passwd", "real/../secret", "a\x00b"} {
		_, err := d.Open(name)
		require.Error(t, err, name)
		require.Error(t, d.Remove(name), name)
		require.Error(t, d.WriteFile(name, 0o600, nil), name)
	}
	content, err := d.ReadFile("secret", 6)
	require.NoError(t, err)
	require.Equal(t, "secret", string(content))
	_, err = d.ReadFile("secret", 5)
	require.ErrorContains(t, err, "larger than 5 bytes")
}

// letWrite gives a stranger the right to write, by an access control list (acl(5); struct
// posix_acl_xattr_entry in linux/posix_acl_xattr.h).
func letWrite(t *testing.T, path string) {
	t.Helper()
	type entry struct {
		Tag, Perm uint16
		ID        uint32
	}
	const user, mask, none = 0x02, 0x10, 1<<32 - 1
	list, err := binary.Append([]byte{2, 0, 0, 0}, binary.LittleEndian, []entry{{0x01, 7, none}, {user, 7, stranger}, {0x04, 5, none}, {mask, 7, none}, {0x20, 5, none}})
	require.NoError(t, err)
	err = unix.Setxattr(path, "system.posix_acl_access", list, 0)
	if errors.Is(err, unix.ENOTSUP) {
		testns.SkipKernel(t, "access control lists on the file system of temporary files")
	}
	require.NoError(t, err)
}

// A vetted object is one that only root and the caller can change or exchange.
func TestSEC11_OnlyWhatIsRootsAloneIsVetted(t *testing.T) {
	testns.Root(t)
	for name, tc := range map[string]struct {
		spoil func(t *testing.T, root string)
		path  string // empty: dir/link
		says  string // empty: it is vetted
	}{
		"root's":                             {},
		"a directory":                        {path: "dir"},
		"nothing there":                      {path: "dir/gone", says: "no such file"},
		"a file on the way":                  {path: "dir/link/below", says: "not a directory"},
		"root's link, in a sticky directory": {spoil: func(t *testing.T, root string) { require.NoError(t, os.Chmod(root+"/dir", 0o777|os.ModeSticky)) }},
		"root's file, in a sticky directory": {spoil: func(t *testing.T, root string) { require.NoError(t, os.Chmod(root+"/bin", 0o777|os.ModeSticky)) }, says: "it has mode 1777"},
		"below a sticky directory":           {spoil: func(t *testing.T, root string) { require.NoError(t, os.Chmod(root, 0o777|os.ModeSticky)) }},
		"in a world-writable directory":      {spoil: func(t *testing.T, root string) { require.NoError(t, os.Chmod(root+"/dir", 0o777)) }, says: "it has mode 0777"},
		"below a world-writable directory":   {spoil: func(t *testing.T, root string) { require.NoError(t, os.Chmod(root, 0o777)) }, says: "it has mode 0777"},
		"in a stranger's directory":          {spoil: func(t *testing.T, root string) { require.NoError(t, os.Chown(root+"/dir", stranger, 0)) }, says: "it belongs to uid 65534"},
		"a group's directory": {spoil: func(t *testing.T, root string) {
			require.NoError(t, errors.Join(os.Chown(root+"/dir", 0, stranger), os.Chmod(root+"/dir", 0o775)))
		}, says: "it has mode 0775 and group 65534"},
		"a directory of root's group":             {spoil: func(t *testing.T, root string) { require.NoError(t, os.Chmod(root+"/dir", 0o775)) }},
		"a directory with an access control list": {spoil: func(t *testing.T, root string) { letWrite(t, root+"/dir") }, says: "it has mode 0775 and an access control list"},
		"a file with an access control list":      {spoil: func(t *testing.T, root string) { letWrite(t, root+"/bin/file") }, says: "it has mode 0775 and an access control list"},
		"a stranger's link":                       {spoil: func(t *testing.T, root string) { require.NoError(t, os.Lchown(root+"/dir/link", stranger, 0)) }, says: "it belongs to uid 65534"},
		"a stranger's file":                       {spoil: func(t *testing.T, root string) { require.NoError(t, os.Chown(root+"/bin/file", stranger, 0)) }, says: "it belongs to uid 65534"},
		"a world-writable file":                   {spoil: func(t *testing.T, root string) { require.NoError(t, os.Chmod(root+"/bin/file", 0o757)) }, says: "it has mode 0757"},
		"a link to a stranger's":                  {spoil: func(t *testing.T, root string) { require.NoError(t, os.Chown(root+"/bin", stranger, 0)) }, says: "it belongs to uid 65534"},
		"a world-writable directory":              {spoil: func(t *testing.T, root string) { require.NoError(t, os.Chmod(root+"/dir", 0o777|os.ModeSticky)) }, path: "dir", says: "it has mode 1777"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			require.NoError(t, errors.Join(os.Mkdir(root+"/dir", 0o755), os.Mkdir(root+"/bin", 0o755), os.WriteFile(root+"/bin/file", nil, 0o755), os.Symlink("/bin/../../../bin/file", root+"/dir/link")))
			start, err := os.Open(root)
			require.NoError(t, err)
			defer start.Close()
			if tc.spoil != nil {
				tc.spoil(t, root)
			}
			f, err := durable.OpenVetted(start, cmp.Or(tc.path, "/dir/link"))
			if tc.says != "" {
				require.ErrorContains(t, err, tc.says)
				require.Equal(t, strings.HasPrefix(tc.says, "it "), errors.Is(err, durable.ErrShared))
				return
			}
			require.NoError(t, err)
			require.NoError(t, f.Close())
		})
	}
	_, err := durable.OpenVetted(nil, "/proc/self/root/etc")
	require.ErrorIs(t, err, durable.ErrShared, "the process behind the link changes")
}

func TestWritable(t *testing.T) {
	testns.Enter(t, testns.Mount)
	root := testns.TempDir(t)
	for _, dir := range []string{"good", "read-only"} {
		require.NoError(t, os.Mkdir(filepath.Join(root, dir), 0o755))
	}
	readOnly := filepath.Join(root, "read-only")
	require.NoError(t, unix.Mount(readOnly, readOnly, "", unix.MS_BIND, ""))
	require.NoError(t, unix.Mount("", readOnly, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
	require.NoError(t, os.Chmod(root, 0o755))
	writable := func(dir, nearest string) error {
		t.Helper()
		got, err := durable.Writable(filepath.Join(root, dir))
		require.Equal(t, filepath.Join(root, nearest), got)
		return err
	}
	require.NoError(t, writable("good", "good"))
	require.NoError(t, writable("good/a/b", "good"))
	require.ErrorIs(t, writable("read-only", "read-only"), unix.EROFS)
	require.ErrorIs(t, writable("read-only/a/b", "read-only"), unix.EROFS)

	// A user whom the modes exclude still gets the error about the mount.
	require.NoError(t, unix.Setresuid(0, 4242, 0)) // without its capabilities
	good, mounted := writable("good", "good"), writable("read-only", "read-only")
	require.NoError(t, unix.Setresuid(0, 0, 0))
	require.ErrorIs(t, good, unix.EACCES)
	require.ErrorIs(t, mounted, unix.EROFS)
}

func TestResolve(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	at := func(elements ...string) string { return filepath.Join(append([]string{dir}, elements...)...) }
	require.NoError(t, os.MkdirAll(at("a", "b"), 0o755))
	require.NoError(t, os.WriteFile(at("file"), nil, 0o600))
	for link, target := range map[string]string{
		"absolute": at("a"), "relative": "a/b", "dangling": "gone/deep", "chain": "relative",
		"loop": "loop", "a/up": "..", "slashes": "a//b/", "a/b/absent": at("x", "..", "y"),
	} {
		require.NoError(t, os.Symlink(target, at(link)))
	}
	t.Chdir(dir)

	for path, want := range map[string]string{
		dir:                      dir,
		dir + "/":                dir,
		dir + "//a/./b//":        at("a", "b"),
		dir + "/a/../file":       at("file"),
		dir + "/relative/..":     at("a"), // not dir: ".." of where the link leads
		dir + "/absolute/b":      at("a", "b"),
		dir + "/chain/new":       at("a", "b", "new"),
		dir + "/dangling":        at("gone", "deep"),
		dir + "/dangling/x":      at("gone", "deep", "x"),
		dir + "/missing/../x":    at("x"),
		dir + "/a/up/a/up":       dir,
		dir + "/slashes":         at("a", "b"),
		dir + "/a/b/absent":      at("y"),
		"a":                      at("a"),
		"./relative/":            at("a", "b"),
		"relative/../new":        at("a", "new"),
		".":                      dir,
		"/":                      "/",
		"/..":                    "/",
		"/../" + dir + "/a/b/..": at("a"),
	} {
		got, err := durable.Resolve(path)
		require.NoError(t, err, path)
		require.Equal(t, want, got, path)
	}
	for path, want := range map[string]string{
		"":              "empty path",
		dir + "/loop":   "open directory " + dir + "/loop: too many levels of symbolic links",
		dir + "/file/x": "not a directory",
	} {
		_, err := durable.Resolve(path)
		require.ErrorContains(t, err, want, path)
	}
}
