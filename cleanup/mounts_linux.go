// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/fsmount"
	"github.com/slipway-dev/slipway/internal/mountinfo"
)

// mountPoint is a mount of the thread's mount namespace, as it was listed.
type mountPoint struct {
	mountObject
	fstype string
}

// mountObject is a mount. The kernel gives the numbers of one that has gone to the next.
type mountObject struct {
	path   string
	id     int
	dev    string // number of the file system's device
	root   string // the directory of the file system that is mounted
	source string
}

// listMounts reads the mountinfo of the thread, which may be in another mount
// namespace than the process.
func listMounts() (out []mountPoint, err error) {
	infos, err := mountinfo.Read()
	for _, info := range infos {
		out = append(out, mountPoint{mountOf(info), info.FSType})
	}
	return out, err
}

func mountOf(m mountinfo.Mount) mountObject {
	return mountObject{m.Point, m.ID, m.Dev, m.Root, m.Source}
}

// mountPoints returns the mounts as they were when first asked for.
func (n *node) mountPoints() ([]mountPoint, error) { return n.mounts.get(listMounts) }

// mountsBelow returns the mounts below dir, but not on it, those that are on others first: the
// longer path, and of one path the mount that the kernel lists later, which is the younger.
func mountsBelow(all []mountPoint, dir string) (out []mountPoint) {
	for _, m := range slices.Backward(all) {
		if strings.HasPrefix(m.path, dir+"/") {
			out = append(out, m)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].path > out[j].path })
	return out
}

// unmount unmounts the mount that was listed. Its mount point is a path without
// symbolic links, and the last element is not followed.
func (o mountObject) unmount() error {
	var top mountinfo.Mount
	err := fsmount.Real{}.UnmountOnly(o.path, func(m mountinfo.Mount) bool {
		top = m
		return mountOf(m) == o
	})
	if err == nil {
		return nil
	}
	all, listErr := listMounts()
	if listErr != nil {
		return listErr
	}
	if named := (*fs.PathError)(nil); errors.As(err, &named) {
		err = named.Err // the item names the path
	}
	switch {
	case !slices.ContainsFunc(all, func(m mountPoint) bool { return m.mountObject == o }):
		return nil
	case top.Point != "" && mountOf(top) != o:
		return fmt.Errorf("a %s was mounted over it: %w", top.FSType, failure.ErrReplaced)
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%w (a process has a file open or its working directory there, or something is mounted below)", err)
	}
	return err
}
