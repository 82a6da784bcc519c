// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package faults

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// Trouble is a real obstacle that keeps apply from writing, until it is removed.
type Trouble struct {
	Name string
	Says string // a regular expression for the error; empty if apply must succeed

	do, mend string // scripts
}

// Setting is a node with troubles.
type Setting struct {
	Name     string
	Troubles []Trouble

	setup string // a script that puts small file systems in place
}

// Settings returns all settings.
func Settings() []Setting {
	small := Setting{Name: "small file systems"}
	for _, where := range [][2]string{ // the directory, and the object that the error names
		{"/opt/cni", "/opt/cni/bin/"}, {"/etc/cni", "/etc/cni/net.d/"}, {"/etc/sysctl.d", "/etc/sysctl.d/"},
		{"/var/lib", stateDir}, {"/run/agent-config", "/run/agent-config"},
	} {
		dir, object := where[0], where[1]
		fill := dir + "/lost+found" // which a new file system may hold
		small.setup += fmt.Sprintf("mkdir -p %s; mount -t tmpfs -o size=256k,nr_inodes=64 tmpfs %[1]s\n", dir)
		small.Troubles = append(small.Troubles,
			Trouble{"no space in " + dir, object + ".*no space left on device.*(df|inodes)",
				"cat /dev/zero 2>/dev/null > " + fill + " || true", "rm " + fill},
			Trouble{"no inodes in " + dir, object + ".*no space left on device.*(df|inodes)",
				"mkdir " + fill + "; i=0; while mkdir " + fill + "/$i 2>/dev/null; do i=$((i+1)); done", "rm -r " + fill},
			Trouble{"read-only " + dir, object + ".*read-only file system.*(read-write|readOnly|can be written to)",
				"mount -o remount,ro " + dir, "mount -o remount,rw " + dir})
	}
	disk := Setting{Name: "disk", setup: "set -- " + imageName + " '' a-boot\n" + mountDisk}
	for _, path := range []string{"/opt/cni/bin", "/opt/cni/bin/test-cni", "/etc/cni/net.d/05-cilium.conflist", "/etc/sysctl.d/99-zzz-override_cilium.conf", "/var/lib"} {
		disk.Troubles = append(disk.Troubles, Trouble{"immutable " + path, path + ".*operation not permitted.*immutable", "chattr +i " + path, "chattr -i " + path})
	}
	return []Setting{small, disk, {Name: "in the way", Troubles: inTheWay()}}
}

// imageName stands for the image that mountDisk mounts.
const imageName = "@IMAGE@"

// inTheWay are troubles with another object in the place of one of our files.
func inTheWay() (all []Trouble) {
	for _, path := range []string{
		"/etc/cni/net.d/05-cilium.conflist", "/opt/cni/bin/test-cni", "/etc/sysctl.d/99-zzz-override_cilium.conf",
		"/run/agent-config/cluster-name", "/run/agent-config/..data", ledgerFile, "/run/slipway.lock",
	} {
		dir := filepath.Dir(path)
		mine := path == ledgerFile || path == "/run/slipway.lock" // no other program uses that path
		aside := fmt.Sprintf("[ -d %s ] || { mkdir -m 700 %[1]s; touch /run/made; }; [ ! -e %s ] || mv %[2]s /run/aside\n", dir, path)
		back := fmt.Sprintf("rm -r %s; [ ! -e /run/aside ] || mv /run/aside %[1]s; [ ! -e /run/made ] || rm -r %s /run/made\n", path, dir)
		for _, put := range [][2]string{
			{"directory", "mkdir %s"}, {"full directory", "mkdir -p %s/x/y"}, {"FIFO", "mkfifo %s"}, {"device", "mknod %s c 1 3"},
		} {
			all = append(all, Trouble{put[0] + " at " + path, path + ".*(move it away|in the way)", aside + fmt.Sprintf(put[1], path), back})
		}
		says := path + ".*(unmount|move (it|the file) away|chmod)"
		if path == ledgerFile { // it is read first
			says = stateDir + ".*(unmount|salvage)"
		}
		if dir != "/run/agent-config" { // a file to mount on is no configuration
			all = append(all, Trouble{"mount on " + path, says, aside + fmt.Sprintf("echo {} > %s; mount --bind %[1]s %[1]s", path), "umount " + path + "\n" + back})
		}
		link := Trouble{"link at " + path, "", aside + fmt.Sprintf("ln -s /etc/hostname %s", path), back}
		if mine || dir == "/run/agent-config" { // the directory is then no configuration
			link.Says = path + ".*move it away"
		}
		all = append(all, link)
	}
	return all
}

// Suffer makes apply meet each trouble of a setting, and returns an error if it reacts
// wrongly.
func (c Campaign) Suffer(ctx context.Context, setting Setting, done func(Trouble, error) error) (err error) {
	s := Scenarios(c.Work)[0]
	image := filepath.Join(c.Work, "trouble.img")
	if strings.Contains(setting.setup, imageName) {
		if err := makeImage(ctx, "ext4", image); err != nil {
			return err
		}
	}
	s.node = strings.ReplaceAll(setting.setup, imageName, image) + s.node
	st, err := newStand(ctx, c.Binary, c.Work, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.node.Close()) }()
	for _, trouble := range setting.Troubles {
		if err := done(trouble, st.suffer(ctx, trouble)); err != nil {
			return err
		}
	}
	return nil
}

func (s *stand) suffer(ctx context.Context, trouble Trouble) (err error) {
	if err := s.node.clean(ctx, []string{"sh", trouble.do}); err != nil {
		return err
	}
	troubled := *s
	if troubled.start, err = s.state(ctx); err != nil {
		return err
	}
	o, err := s.node.command(ctx, s.run...)
	if err != nil {
		return err
	}
	errs := []error{troubled.says(ctx, trouble, o)}
	if trouble.Says == "" {
		errs = append(errs, s.node.clean(ctx, s.undo...), troubled.is(ctx, "undone", troubled.start))
	}
	errs = append(errs, s.node.clean(ctx, []string{"sh", trouble.mend}, s.run), s.is(ctx, "mended", s.wanted))
	return errors.Join(append(errs, s.node.clean(ctx, s.undo...), s.is(ctx, "undone", s.before))...)
}

// says judges apply's messages, and the state that it has left.
func (s *stand) says(ctx context.Context, trouble Trouble, o outcome) error {
	if trouble.Says == "" {
		if o.code != 0 {
			return errors.New(o.String())
		}
		return nil
	}
	now, err := s.state(ctx)
	if err != nil {
		return err
	}
	errs := []error{s.torn(now)}
	if o.code != 1 || !regexp.MustCompile("(?m)^nodeinit: .*"+trouble.Says).MatchString(o.output) {
		errs = append(errs, errors.New(o.String()))
	}
	return errors.Join(errs...)
}
