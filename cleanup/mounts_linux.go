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
	depth  int // how many mounts there are under it
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
func listMounts() ([]mountPoint, error) {
	infos, err := mountinfo.Read()
	if err != nil {
		return nil, err
	}
	parents := map[int]int{}
	for _, info := range infos {
		parents[info.ID] = info.Parent
	}
	depths := map[int]int{}
	out := make([]mountPoint, 0, len(infos))
	for _, info := range infos {
		out = append(out, mountPoint{
			mountObject: mountOf(info),
			fstype:      info.FSType,
			depth:       mountDepth(parents, depths, info.ID),
		})
	}
	return out, nil
}

func mountOf(m mountinfo.Mount) mountObject {
	return mountObject{m.Point, m.ID, m.Dev, m.Root, m.Source}
}

// mountPoints returns the mounts as they were when first asked for.
func (n *node) mountPoints() ([]mountPoint, error) { return n.mounts.get(listMounts) }

// mountDepth keeps the depths that it has found, so that each mount of a stack is passed once.
func mountDepth(parents, depths map[int]int, id int) int {
	depth, known := depths[id]
	parent, ok := parents[id]
	if known || !ok || parent == id {
		return depth
	}
	depths[id] = 0 // the list is not of one moment: parents could be a circle
	depths[id] = mountDepth(parents, depths, parent) + 1
	return depths[id]
}

// mountsBelow returns the mounts below dir, but not on it, those that are on
// others first.
func mountsBelow(all []mountPoint, dir string) []mountPoint {
	var out []mountPoint
	for _, m := range all {
		if strings.HasPrefix(m.path, dir+"/") {
			out = append(out, m)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].depth > out[j].depth })
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
