// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/cri/critest"
)

// lie is a false identity of the second kind of attacker. He takes it on again at random
// moments, mostly from one attempt to the next.
type lie struct {
	tell func() (end func() error, about uint64, err error) // about: the pid that the lie is about, if any
	at   string                                             // path at which he listens all the time, if any
	pod  bool                                               // by root in a pod, not by a user
	each bool                                               // again for each attempt, for its duration
}

func allLies() map[string]lie {
	return map[string]lie{
		"kubelet":          {tell: pretend("kubelet", liars+"/su", "--container-runtime-endpoint=unix://"+his), at: his},
		"kubelet of a pod": {tell: pretend("kubelet", programs, "--container-runtime-endpoint=unix://"+his), at: his, pod: true},
		"agent":            {tell: pretend("cilium-agent", liars+"/su")},
		"locks":            {tell: lockAll, each: true},
	}
}

// startLiar starts an attacker who tells the lie between each attack and the next stop.
// He has the directory root as his descriptor 3; if n is not nil, he is on that node.
func startLiar(root string, n *node, name string) (*attacker, error) {
	args := []string{programs + "/attack", "-as", "liar", name}
	attr := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	start := (*exec.Cmd).Start
	switch {
	case n == nil:
		args[0] = "/proc/self/exe"
		attr.Unshareflags, attr.Pdeathsig = unix.CLONE_NEWNS, unix.SIGKILL
	case allLies()[name].pod:
		const enter = `mkdir -p /sys/fs/cgroup/kubepods/pod12; echo $$ > /sys/fs/cgroup/kubepods/pod12/cgroup.procs; exec unshare --mount --pid --fork --kill-child "$@"`
		args = append([]string{"sh", "-ec", enter, "sh"}, args...)
		attr = nil
	}
	if n != nil {
		start = n.StartCommand
	}
	a, err := startAs(root, args, attr, start)
	if a != nil {
		a.tells = true
	}
	return a, err
}

// lieUntilEnd is the liar's process.
func lieUntilEnd(name string) error {
	runtime.LockOSThread()
	l, ok := allLies()[name]
	if !ok {
		return fmt.Errorf("no lie is called %q", name)
	}
	if l.at != "" {
		if err := listenAt(l.at); err != nil {
			return err
		}
	}
	him := &liar{lie: l}
	err := obey(him.attack)
	if him.end != nil {
		err = errors.Join(err, him.end())
	}
	return err
}

// liar tells his lie repeatedly.
type liar struct {
	lie
	end   func() error // ends the last lie; nil if he has not begun
	about uint64
	lies  uint64 // number of lies in this attack
}

func (l *liar) again() (err error) {
	if l.end != nil {
		if err := l.end(); err != nil {
			return err
		}
	}
	l.end, l.about, err = l.tell()
	l.lies++
	return err
}

// attack reports the subject of the lie, and returns when an order has come.
func (l *liar) attack() (lies uint64, err error) {
	l.lies = 0
	if l.end == nil || l.each || sometimes(2) {
		if err := l.again(); err != nil {
			return 0, err
		}
	}
	if err := binary.Write(os.Stdout, binary.LittleEndian, l.about); err != nil {
		return 0, err
	}
	for !told(time.Duration(rand.IntN(10_000)) * time.Microsecond) {
		if l.each {
			continue
		}
		if err := l.again(); err != nil {
			return 0, err
		}
	}
	return l.lies, nil
}

// pretend runs a program of that name: mostly the one in the folder, which may be a link
// to a set-user-id one, which then becomes root in full. It may have a lock on the pid
// file that it was handed.
func pretend(name, dir string, args ...string) func() (func() error, uint64, error) {
	return func() (func() error, uint64, error) {
		path := filepath.Join(dir, name)
		if sometimes(4) {
			path = filepath.Join(liars, "plain", name)
		}
		cmd := exec.Command(path, args...)
		cmd.Env = []string{standIn + "=" + asRoot}
		if f, err := os.Open(pidFile); err == nil && sometimes(2) {
			defer f.Close()
			if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
				cmd.ExtraFiles = []*os.File{f}
			}
		}
		end, err := waiting(cmd, (*exec.Cmd).Start)
		if err != nil {
			return nil, 0, err
		}
		return end, uint64(cmd.Process.Pid), nil
	}
}

// listenAt is a runtime that names folders it must not name.
func listenAt(path string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	serve(l, critest.Runtime{ // until he ends
		Info: critest.Containerd("/etc/ssh/sshd_config.d", liars), Sandboxes: func() []string { return []string{"a liar's"} },
	})
	return nil
}

// lockAll locks all files that he may open below run, in the directory that he was given.
func lockAll() (func() error, uint64, error) {
	var all []int
	var locks uint64
	var walk func(at int, name string)
	walk = func(at int, name string) {
		fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return // he may not
		}
		all = append(all, fd)
		how := unix.LOCK_SH
		if sometimes(2) {
			how = unix.LOCK_EX
		}
		if unix.Flock(fd, how|unix.LOCK_NB) == nil {
			locks++
		}
		entries, _ := os.ReadDir(fmt.Sprintf("/proc/self/fd/%d", fd))
		for _, e := range entries {
			walk(fd, e.Name())
		}
	}
	walk(3, "run")
	return func() (err error) {
		for _, fd := range all {
			err = errors.Join(err, unix.Close(fd))
		}
		return err
	}, locks, nil
}
