// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// boot starts a virtual machine, waits for its end, and reads what it printed.
func (m *machines) boot(ctx context.Context, kernel string, b boot) (result, error) {
	initial := filepath.Join(m.images, "initial-"+kernel+"-"+b.name+".cpio")
	defer os.Remove(initial)
	if err := concatenate(initial, filepath.Join(m.kernelDir(kernel), "modules.cpio"), filepath.Join(m.images, "initial-"+architecture(kernel)+".cpio")); err != nil {
		return result{}, err
	}
	log := m.logFile(kernel, b)
	args, err := m.commandLine(kernel, b, initial, log)
	if err != nil {
		return result{}, err
	}
	limited, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	begin := time.Now()
	cmd := exec.CommandContext(limited, args[0], args[1:]...)
	out, failed := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return result{}, ctx.Err()
	}
	if failed != nil {
		fmt.Printf("the virtual machine: %v\n%s", failed, out) // its output shows how far it got
	}
	r, err := readResult(log)
	r.minutes = time.Since(begin).Minutes()
	if state := cmd.ProcessState; state != nil {
		r.processor = (state.UserTime() + state.SystemTime()).Minutes()
	}
	return r, err
}

func (m *machines) logFile(kernel string, b boot) string {
	return filepath.Join(m.logs, kernel+"_"+b.name+".log")
}

// commandLine is an emulator's command line. A processor with more than x86-64-v2 takes twice
// the time, since the emulator must translate the instructions that glibc and Go then choose.
func (m *machines) commandLine(kernel string, b boot, initial, log string) ([]string, error) {
	arch := architecture(kernel)
	args, err := m.qemu(arch)
	if err != nil {
		return nil, err
	}
	machine, console := []string{"-machine", "q35,accel=tcg", "-cpu", "Nehalem"}, "ttyS0 reboot=t"
	if arch == arm64 {
		machine, console = []string{"-machine", "virt,accel=tcg", "-cpu", "cortex-a57"}, "ttyAMA0"
	}
	args = append(append(args, machine...), "-m", "2500", "-nodefaults", "-display", "none", "-no-reboot",
		"-chardev", "file,id=log,path="+log, "-serial", "chardev:log",
		"-kernel", filepath.Join(m.kernelDir(kernel), "vmlinuz"), "-initrd", initial,
		"-append", fmt.Sprintf("console=%s quiet loglevel=1 panic=-1 random.trust_cpu=on mitigations=off slipway.run=%s slipway.cgroup=%s slipway.packages=%s slipway.skip=%s %s",
			console, strings.Join(b.parts, ","), b.cgroup, b.packages, b.skip, b.args))
	for _, disk := range []string{m.path(rootOf(arch), "image"), filepath.Join(m.kernelDir(kernel), "modules.image"), filepath.Join(m.images, "tests-"+arch+".image")} {
		args = append(args, "-drive", "file="+disk+",format=raw,if=virtio,snapshot=on")
	}
	return args, nil
}

func concatenate(to string, from ...string) (err error) {
	w, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	for _, name := range from {
		r, err := os.Open(name)
		if err != nil {
			return err
		}
		_, err = io.Copy(w, r)
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
	return nil
}
