// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package faults

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/verify/process"
)

// PowerCuts cuts the power at calls of a command of nodeinit that writes to a disk: the
// program is killed there, and when the node starts again it only has the content of the
// disk's image at that moment. Unsynced data is still in memory then, and lost.
type PowerCuts struct {
	Binary     string // of Nodeinit
	Work       string // a directory below /tmp, or of another place that nodes see
	FileSystem string // ext4 or xfs
	Command    string // the scenario apply, update or install-cni
	Limit      int    // number of points; 0 means all
	Done       func(Cut) error
}

// Cut is the result of one power cut.
type Cut struct {
	FileSystem string
	Point
	Committed bool   // the file system committed its own journal once more, as it does every few seconds
	Violation string // empty if none
}

// syncing lists the calls between which a disk's state differs.
const syncing = "fsync,fdatasync,renameat,renameat2,unlinkat,mkdirat,symlinkat,write,pwrite64,ftruncate"

// The directories on the disk; their files outlive a reboot.
var diskDirs = []string{"/etc/cni", "/etc/sysctl.d", "/opt/cni", "/var/lib", "/mnt/agent"}

// mkfs makes an image of the file system's minimal size. Unwritten data is lost as easily
// as possible: ext4 does not sync renamed files, does not order data before metadata, and
// commits only on request.
var mkfs = map[string]struct{ size, make, options string }{
	"ext4": {"16M", "mkfs.ext4 -q -F", "-o commit=600,noauto_da_alloc,data=writeback"},
	"xfs":  {"300M", "mkfs.xfs -q -f", ""},
}

// mountDisk is a script that mounts the image $1 with the options $2, and puts the
// directories on it that outlive a reboot. The node has a boot id of its own: $3. XFS refuses
// to mount the disk until the kernel has released that of the previous node.
const mountDisk = `
mkdir -p /etc/sysctl.d /etc/cni /opt/cni
[ -e /dev/loop-control ] || mknod /dev/loop-control c 10 237
for try in 1 2 3 4 5 6 7 8 9; do
	loop=$(losetup -f)
	[ -e $loop ] || mknod $loop b 7 ${loop#/dev/loop}
	losetup $loop "$1" && break
done
for try in 1 2 3 4 5 6 7 8 9; do
	mount $2 $loop /mnt && break || sleep 0.$try
done
mountpoint -q /mnt
losetup -d $loop
for dir in /etc/cni /etc/sysctl.d /opt/cni /var/lib; do
	mkdir -p /mnt/disk$dir
	mount --bind /mnt/disk$dir $dir
done
mkdir -p /mnt/agent
echo "$3" > /run/boot_id
mount --bind /run/boot_id /proc/sys/kernel/random/boot_id
echo 1 > /proc/sys/net/ipv4/conf/all/rp_filter
touch /run/xtables.lock
`

// commit makes the file system write its journal, by syncing an unrelated file.
const commit = "echo x > /mnt/unrelated && sync /mnt/unrelated"

// boot starts a node that has the image as its disk.
func (c PowerCuts) boot(ctx context.Context, image string) (*node, error) {
	n, err := newNode(ctx, c.Binary, c.Work)
	if err != nil {
		return nil, err
	}
	o, err := n.run(ctx, "sh", "-euc", mountDisk, "sh", image, mkfs[c.FileSystem].options, rand.Text())
	if err == nil && o.code != 0 {
		err = errors.New(o.String())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mount a disk of %s: %w", c.FileSystem, err), n.Close())
	}
	n.disk = true
	return n, nil
}

// on boots a node, calls f and shuts the node down: unsynced data is written to the image, as
// in an orderly shutdown.
func (c PowerCuts) on(ctx context.Context, image string, f func(*stand) error) error {
	n, err := c.boot(ctx, image)
	if err != nil {
		return err
	}
	return errors.Join(f(&stand{Scenario: c.scenario(), node: n}), n.Close())
}

func (c PowerCuts) scenario() Scenario {
	all := Scenarios(c.Work)
	s := all[slices.IndexFunc(all, func(s Scenario) bool { return s.Name == c.Command })]
	s.run = append(slices.Clone(s.run), "--dest", "/mnt/agent/config")
	return s
}

// Play cuts the power at points spread over the command.
func (c PowerCuts) Play(ctx context.Context) error {
	first, second := filepath.Join(c.Work, "first.img"), filepath.Join(c.Work, "second.img")
	if err := c.format(ctx, first); err != nil {
		return err
	}
	rehearsal, points, err := c.rehearse(ctx, first, second)
	if err != nil {
		return fmt.Errorf("%s on %s: %w", c.Command, c.FileSystem, err)
	}
	spread(points)
	if c.Limit > 0 {
		points = points[:min(c.Limit, len(points))]
	}
	for i, p := range points {
		cut := Cut{FileSystem: c.FileSystem, Point: p, Committed: i%2 == 1}
		if err := c.cut(ctx, first, second, cut); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		if err := c.judge(ctx, second, rehearsal); err != nil {
			cut.Violation = err.Error()
		}
		if err := c.Done(cut); err != nil {
			return err
		}
	}
	return nil
}

// format makes the image, with the disk's initial content.
func (c PowerCuts) format(ctx context.Context, image string) error {
	if err := makeImage(ctx, c.FileSystem, image); err != nil {
		return err
	}
	return c.on(ctx, image, func(s *stand) error {
		if err := s.node.clean(ctx, []string{"sh", s.Scenario.node}); err != nil || s.Scenario.start == nil {
			return err
		}
		return s.Scenario.start(ctx, s.node)
	})
}

// makeImage makes an empty file system in a file.
func makeImage(ctx context.Context, system, image string) error {
	const script = `truncate -s "$1" "$2" && $3 "$2"`
	_, err := process.Output(exec.CommandContext(ctx, "sh", "-euc", script, "sh", mkfs[system].size, image, mkfs[system].make), nil)
	return err
}

// rehearse runs the command undisturbed, and cuts the power after it: its reported
// changes must be there. It returns a stand for its states, and the points.
func (c PowerCuts) rehearse(ctx context.Context, first, second string) (r *stand, points []Point, err error) {
	r = &stand{Scenario: c.scenario()}
	if err := copyImage(ctx, first, second); err != nil {
		return nil, nil, err
	}
	cut := filepath.Join(c.Work, "cut.img")
	err = c.on(ctx, second, func(s *stand) (err error) {
		if r.start, err = s.state(ctx); err != nil {
			return err
		}
		if points, err = s.record(ctx); err != nil {
			return err
		}
		if r.wanted, err = s.state(ctx); err != nil {
			return err
		}
		return copyImage(ctx, second, cut)
	})
	if err != nil {
		return nil, nil, err
	}
	points = slices.DeleteFunc(points, func(p Point) bool {
		return p.Fault != Kill || !slices.Contains(strings.Split(syncing, ","), p.Call)
	})
	r.before = r.start
	return r, points, c.on(ctx, cut, func(s *stand) error {
		if err := s.is(ctx, "power cut after the end", r.wanted); err != nil {
			return err
		}
		if err := s.node.clean(ctx, s.undo...); err != nil {
			return err
		}
		return s.is(ctx, "undone", r.before)
	})
}

// cut leaves in second the disk's content after a power cut at the point.
func (c PowerCuts) cut(ctx context.Context, first, second string, cut Cut) error {
	running := filepath.Join(c.Work, "running.img")
	if err := copyImage(ctx, first, running); err != nil {
		return err
	}
	return c.on(ctx, running, func(s *stand) error {
		if _, _, err := s.inject(ctx, cut.Point); err != nil {
			return err
		}
		if cut.Committed {
			if err := s.node.clean(ctx, []string{"sh", commit}); err != nil {
				return err
			}
		}
		return copyImage(ctx, running, second)
	})
}

// judge starts a node from the image: are all files whole, and can the node go on, and be
// reverted?
func (c PowerCuts) judge(ctx context.Context, image string, r *stand) error {
	return c.on(ctx, image, func(s *stand) error {
		s.before, s.start, s.wanted = r.before, r.start, r.wanted
		now, err := s.state(ctx)
		if err != nil {
			return fmt.Errorf("after the cut: %w", err)
		}
		if err := s.torn(now); err != nil {
			return err
		}
		if err := s.node.clean(ctx, s.run); err != nil {
			return err
		}
		if err := s.is(ctx, "applied again", s.wanted); err != nil {
			return err
		}
		if err := s.node.clean(ctx, s.undo...); err != nil {
			return err
		}
		return s.is(ctx, "undone", s.before)
	})
}

// copyImage copies the data written to an image so far.
func copyImage(ctx context.Context, from, to string) error {
	_, err := process.Output(exec.CommandContext(ctx, "cp", "--reflink=auto", "--sparse=always", from, to), nil)
	return err
}
