// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cleanup/internal/filetree"
	"github.com/slipway-dev/slipway/cleanup/internal/rtnl"
	"github.com/slipway-dev/slipway/internal/cniresult"
)

// node is the state of the node that finders, or the objects to remove, share. All of it
// is used on the calling thread.
type node struct {
	own        *owned
	keep       *filetree.Keep
	recorded   map[string]string // paths that only another agent wants, and that agent
	stateDirs  []string          // the ownership's, with no symbolic link among the parents
	cgroupRoot string
	strandPods bool
	results    cniresult.Cache
	kernel     rtnl.Conn
	ipsec      rtnl.Conn
	links      links
	pins       pins
	programs   programs
	mounts     lazy[[]mountPoint]
}

// newNode fails where the ledger cannot be read: nothing may be removed then.
func newNode(ctx context.Context, l Leftovers, own *owned) (*node, error) {
	n := &node{own: own, keep: &filetree.Keep{}, recorded: map[string]string{}, cgroupRoot: l.CgroupRoot, strandPods: l.StrandPods, ipsec: rtnl.NewXFRM()}
	for _, path := range l.Keep {
		n.keep.AddAll(path)
	}
	for _, path := range l.KeepDirs {
		n.keep.AddDir(path)
	}
	if err := n.keepRecorded(ctx, ledger.From(ctx)); err != nil {
		return nil, fmt.Errorf("cleanup: paths to keep: %w", err)
	}
	for _, dir := range own.StateDirs {
		n.stateDirs = append(n.stateDirs, filetree.ResolveParents(dir))
	}
	n.results = cniresult.Cache{Dirs: cniresult.Dirs(""), Sandboxes: l.Sandboxes}
	n.links = links{kernel: &n.kernel, carried: map[int][]string{}}
	n.pins = pins{roots: pinRoots(l.BPFRoots, own.Mounts), patterns: own.Pins}
	n.programs = programs{own: own, pins: &n.pins, known: map[uint32]bpfProgram{}}
	return n, nil
}

// lazy is a value that is made when it is first asked for.
type lazy[T any] struct {
	value T
	made  bool
}

func (l *lazy[T]) get(make func() (T, error)) (T, error) {
	if !l.made {
		value, err := make()
		if err != nil {
			return value, err
		}
		l.value, l.made = value, true
	}
	return l.value, nil
}

func (n *node) close() {
	n.kernel.Close()
	n.ipsec.Close()
}

// links are the network links as they were when first asked for, and the names
// of owned programs and filters that were found on them, by index.
type links struct {
	kernel  *rtnl.Conn
	list    lazy[[]rtnl.Link]
	carried map[int][]string
}

func (l *links) all(ctx context.Context) ([]rtnl.Link, error) {
	return l.list.get(func() ([]rtnl.Link, error) { return l.kernel.Links(ctx) })
}

// names returns the names by index.
func (l *links) names(ctx context.Context) (map[int]string, error) {
	list, err := l.all(ctx)
	names := make(map[int]string, len(list))
	for _, link := range list {
		names[link.Index] = link.Name
	}
	return names, err
}

func (l *links) carries(link int, programs ...string) {
	l.carried[link] = append(l.carried[link], programs...)
}

// ownsLink knows of programs as far as the finders of programs have found them.
func (n *node) ownsLink(l rtnl.Link) bool {
	return n.own.ownsLink(l.Name, l.Kind, n.links.carried[l.Index])
}

// keepRecorded keeps the files, mount points and directories that the ledger has records of,
// whichever agent's they are, and the ledger's own directory.
func (n *node) keepRecorded(ctx context.Context, b *ledger.Book) error {
	if b == nil {
		return nil
	}
	agent, dir := b.Mark()
	n.keep.AddAll(dir)
	status, err := b.Status(ctx)
	for _, id := range status.Damaged {
		if _, object, _ := strings.Cut(id, " "); filepath.IsAbs(object) {
			n.keep.AddAll(object)
		}
	}
	for _, r := range status.Records {
		switch {
		case r.Namespace != "" || !filepath.IsAbs(r.Object):
			continue
		case r.Kind == ledger.Dir().Name:
			n.keep.AddDir(r.Object)
		default:
			n.keep.AddAll(r.Object)
		}
		if len(r.Claims) > 0 && !slices.ContainsFunc(r.Claims, func(c ledger.Claim) bool { return c.Agent == agent }) {
			n.recorded[filetree.ResolveParents(r.Object)] = r.Claims[0].Agent
		}
	}
	return err
}

// keeps reports whether the item's path is kept. One that only another agent wants is listed
// as left, with what removes it.
func (s *search) keeps(item Item, path string) bool {
	if agent := s.recorded[path]; agent != "" {
		s.leave(item, fmt.Sprintf("agent %s wants it: uninstalling that removes it", agent))
	}
	return s.keep.Keeps(path)
}
