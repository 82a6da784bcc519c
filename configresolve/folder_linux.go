// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// folder is an open directory of files. It works by descriptors, one element of
// a path at a time: a configuration has hundreds of small files, and what an
// [os.File] costs beside its system calls is more than all else here.
type folder struct {
	*os.File
	fd    int
	name  string // within the root
	asked bool   // chmod has been found out
	chmod bool   // the umask, or an ACL, takes bits from new files
}

// openFolder opens a directory within root.
func openFolder(root *os.Root, name string) (*folder, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// A file of a root looks at each entry of a directory that it lists, even
	// where the list has told its type.
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return &folder{File: os.NewFile(uintptr(fd), filepath.Join(root.Name(), name)), fd: fd, name: name}, nil
}

// file is an open file of a folder.
type file struct {
	fd        int
	dir, name string
}

func (f file) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path.Join(f.dir, f.name), Err: err}
}

func (f file) sync() error {
	return f.fail("fsync", retry(func() error { return unix.Fsync(f.fd) }))
}

func (f file) close() error { return f.fail("close", unix.Close(f.fd)) }

// open opens a file of d by its name alone, and follows no link.
func (d *folder) open(name string, flags int, mode uint32) (f file, err error) {
	f.dir, f.name = d.name, name
	if strings.Contains(name, "/") {
		return f, f.fail("openat", unix.EINVAL)
	}
	err = retry(func() error {
		f.fd, err = unix.Openat(d.fd, name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, mode)
		return err
	})
	return f, f.fail("openat", err)
}

// create makes a file of mode perm.
func (d *folder) create(name string, perm fs.FileMode) (file, error) {
	f, err := d.open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, uint32(perm))
	if err != nil {
		return f, err
	}
	if err := d.setMode(f, uint32(perm)); err != nil {
		return f, errors.Join(err, f.close())
	}
	return f, nil
}

// fill writes the content, and has the disk begin with it.
func (f file) fill(content string) error {
	if err := f.write([]byte(content)); err != nil {
		return err
	}
	_ = unix.SyncFileRange(f.fd, 0, 0, unix.SYNC_FILE_RANGE_WRITE) // a hint: sync tells what went wrong
	return nil
}

// setMode gives f the bits that it was made without. What takes them away does
// so from each file of a directory, so the first one tells.
func (d *folder) setMode(f file, perm uint32) error {
	if !d.asked {
		var st unix.Stat_t
		if err := unix.Fstat(f.fd, &st); err != nil {
			return f.fail("stat", err)
		}
		d.asked, d.chmod = true, st.Mode&0o7777 != perm
	}
	if !d.chmod {
		return nil
	}
	return f.fail("chmod", unix.Fchmod(f.fd, perm))
}

func (f file) write(content []byte) error {
	for len(content) > 0 {
		n, err := unix.Write(f.fd, content)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return f.fail("write", err)
		}
		content = content[max(n, 0):]
	}
	return nil
}

// read returns the content of a regular file, in buf if that is large enough,
// and its permission bits. It does not wait for the writer of a FIFO.
func (d *folder) read(name string, buf []byte) (content []byte, perm fs.FileMode, err error) {
	f, err := d.open(name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(f.fd, &st); err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, 0, f.refuse()
	}
	defer f.close()
	if err != nil {
		return nil, 0, f.fail("stat", err)
	}
	content, err = f.readAll(buf, int(min(st.Size, 1<<20)))
	return content, fs.FileMode(st.Mode & 0o777), err
}

// readlink returns where a symbolic link leads.
func (d *folder) readlink(name string) (string, error) {
	for size := 128; ; size *= 2 {
		buf := make([]byte, size)
		n, err := unix.Readlinkat(d.fd, name, buf)
		if err != nil {
			return "", file{dir: d.name, name: name}.fail("readlinkat", err)
		}
		if n < size {
			return string(buf[:n]), nil
		}
	}
}

// refuse closes a file that is no regular one, and says what it is.
func (f file) refuse() error {
	special := os.NewFile(uintptr(f.fd), path.Join(f.dir, f.name))
	defer special.Close()
	_, err := regular(special)
	return err
}

// readAll reads to the end, which a regular file has where it gives less than
// asked for.
func (f file) readAll(buf []byte, size int) ([]byte, error) {
	if buf = buf[:cap(buf)]; len(buf) <= size {
		buf = make([]byte, size+4096)
	}
	for have := 0; ; {
		n, err := unix.Read(f.fd, buf[have:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, f.fail("read", err)
		}
		if have += n; have < len(buf) {
			return buf[:have], nil
		}
		buf = append(buf, make([]byte, len(buf))...)
	}
}

// retry repeats a system call that a signal has interrupted.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
