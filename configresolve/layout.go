// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
)

// The layout is the one in which the kubelet mounts a ConfigMap:
//
//	KEY -> ..data/KEY
//	..data -> ..2026_01_02_15_04_05.1234
//	..2026_01_02_15_04_05.1234/KEY
//
// Everything but the keys starts with "..", which readers of such a directory
// pass over.
const (
	dataLink   = "..data"
	tempPrefix = "..tmp." // of our links on their way to their name
	fileMode   = 0o644
	dirMode    = 0o755
)

// leftover matches the names of data directories and temporary links, of ours
// and of others that write this layout: the kubelet (dated directories,
// ..data_tmp) and Cilium's init container (..data_SECONDS, ..data.tmp).
var leftover = regexp.MustCompile(`^\.\.(\d{4}(_\d\d){5}\.\d+|data_\d+|data_tmp|data\.tmp|tmp\.\d+)$`)

// layout is what is in a directory, compared with what should be.
type layout struct {
	data    string            // name of the data directory that ..data shows; empty if none
	content map[string]string // what it holds
	same    bool              // it holds exactly what it should, as it should
	linkOf  map[string]string // targets of the symbolic links, by name
	add     []string          // keys whose link is missing, wrong, or something else
	remove  []string          // links of keys that are no more
	litter  []string          // data directories and links that nothing uses
	blocked error             // a directory in the place of a key or of ..data
}

func (l *layout) done() bool {
	return l.blocked == nil && l.same && len(l.add)+len(l.remove)+len(l.litter) == 0
}

// inspect reads the directory root against want and changes nothing.
func inspect(ctx context.Context, root *os.Root, want map[string]string) (*layout, error) {
	l := &layout{}
	kinds, err := l.readLinks(root)
	if err != nil {
		return nil, err
	}
	l.findData(kinds)
	if l.data != "" {
		if l.content, l.same, err = readData(ctx, root, l.data, want); err != nil {
			return nil, err
		}
	}
	l.compare(root, kinds, want)
	return l, nil
}

// readLinks notes where the links lead, and returns the types of all entries.
func (l *layout) readLinks(root *os.Root) (kinds map[string]fs.FileMode, err error) {
	entries, err := list(root, ".")
	if err != nil {
		return nil, err
	}
	l.linkOf = make(map[string]string, len(entries))
	kinds = make(map[string]fs.FileMode, len(entries))
	for _, e := range entries {
		kinds[e.Name()] = e.Type()
		if e.Type() == fs.ModeSymlink {
			if l.linkOf[e.Name()], err = root.Readlink(e.Name()); err != nil {
				return nil, err
			}
		}
	}
	return kinds, nil
}

// findData accepts as the data directory only one beside ..data.
func (l *layout) findData(kinds map[string]fs.FileMode) {
	target := l.linkOf[dataLink]
	if strings.HasPrefix(target, "..") && kinds[target].IsDir() && target != ".." {
		if _, there := kinds[target]; there {
			l.data = target
		}
	}
}

func (l *layout) compare(root *os.Root, kinds map[string]fs.FileMode, want map[string]string) {
	for key := range want {
		if to, ok := strings.CutPrefix(l.linkOf[key], dataLink+"/"); !ok || to != key {
			l.add = append(l.add, key)
		}
	}
	var blocked []string
	for name, kind := range kinds {
		_, wanted := want[name]
		switch {
		case kind.IsDir() && (wanted || name == dataLink):
			blocked = append(blocked, name)
		case name == l.data || name == dataLink || wanted:
		case strings.HasPrefix(l.linkOf[name], dataLink+"/"):
			l.remove = append(l.remove, name)
		case leftover.MatchString(name):
			l.litter = append(l.litter, name)
		}
	}
	for _, names := range [][]string{l.add, l.remove, l.litter, blocked} {
		slices.Sort(names)
	}
	var errs []error
	for _, name := range blocked {
		errs = append(errs, fmt.Errorf("%s is a directory, in the place of a link: move it away", root.Name()+"/"+name))
	}
	l.blocked = errors.Join(errs...)
}

// emptied is an error where want has no keys and there are some.
func (l *layout) emptied(want map[string]string) error {
	held := 0
	for key := range l.content {
		if !reserved(key) {
			held++
		}
	}
	for key := range want {
		if !reserved(key) {
			return nil
		}
	}
	if held == 0 {
		return nil
	}
	return fmt.Errorf("%w, and %d keys would be removed: look at the sources (an unset variable? an empty file?)", ErrEmpty, held)
}

// readData reads a data directory and says whether it holds exactly want, with
// the modes that it should have.
func readData(ctx context.Context, root *os.Root, name string, want map[string]string) (content map[string]string, same bool, err error) {
	data, err := root.OpenRoot(name)
	if err != nil {
		return nil, false, err
	}
	defer data.Close()
	info, err := data.Stat(".")
	if err != nil {
		return nil, false, err
	}
	entries, err := list(data, ".")
	if err != nil {
		return nil, false, err
	}
	content = make(map[string]string, len(entries))
	same = info.Mode().Perm() == dirMode && len(entries) == len(want)
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		if !e.Type().IsRegular() {
			same = false
			continue
		}
		value, mode, err := readFile(data, e.Name())
		if err != nil {
			return nil, false, err
		}
		wanted, ok := want[e.Name()]
		same = same && ok && mode == fileMode && string(value) == wanted
		content[e.Name()] = string(value)
	}
	return content, same, nil
}

// list returns the entries of a directory in no order.
func list(root *os.Root, name string) ([]fs.DirEntry, error) {
	d, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.ReadDir(-1)
}

// readFile reads a regular file, and returns its permission bits too.
func readFile(root *os.Root, name string) (content []byte, perm fs.FileMode, err error) {
	f, err := root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := regular(f)
	if err != nil {
		return nil, 0, err
	}
	content, err = io.ReadAll(f)
	return content, info.Mode().Perm(), err
}
