// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/mountinfo"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realcri"
	"github.com/slipway-dev/slipway/internal/verify/kubernetes/realkube"
)

// debianPackages are the programs that the node runs beside Kubernetes, with the libraries
// that a small Debian lacks.
var debianPackages = []string{
	"containerd", "runc", "containernetworking-plugins", "conntrack", "busybox-static",
	"libseccomp2", "libnetfilter-conntrack3", "libmnl0", "libnfnetlink0",
}

// programs are the directories with the programs that a node runs.
type programs struct {
	kube       string // etcd and every part of Kubernetes, by the name it is called by
	containerd string // root of its own; empty: Debian's
	debian     string // root of the unpacked packages
}

// supported says early, before anything is built, why this machine cannot have a
// node. The error matches [errors.ErrUnsupported].
func supported() error {
	mounts, err := mountinfo.Read()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(mounts, limitsMemory) {
		return fmt.Errorf("this machine's cgroups cannot limit a node's memory, as the kubelet needs: the controller is neither mounted in version 1, "+
			"nor in cgroup.subtree_control of cgroup2: %w", errors.ErrUnsupported)
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("this machine is no Debian, whose containerd and runc the node runs: %w", errors.ErrUnsupported)
	}
	return nil
}

// limitsMemory reports whether cgroups below this mount can have the controller.
func limitsMemory(m mountinfo.Mount) bool {
	switch m.FSType {
	case "cgroup":
		return slices.Contains(strings.Split(m.Super, ","), "memory")
	case "cgroup2":
		text, err := os.ReadFile(filepath.Join(m.Point, "cgroup.subtree_control"))
		return err == nil && slices.Contains(strings.Fields(string(text)), "memory")
	}
	return false
}

func findPrograms(ctx context.Context, log io.Writer, containerd string) (p programs, err error) {
	if err := supported(); err != nil {
		return p, err
	}
	if p.kube, err = realkube.Binary(ctx, log); err != nil {
		return p, err
	}
	if containerd != realcri.Debian {
		if p.containerd, err = realcri.Root(ctx, log, containerd); err != nil {
			return p, err
		}
	}
	p.debian, err = realcri.Unpack(ctx, log, "node", debianPackages...)
	return p, err
}

var kubernetes = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl"}

// link puts every program into dir, under its name: the first of that name.
func (p programs) link(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range kubernetes {
		if err := os.Symlink(p.kube, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	directories := []string{"usr/bin", "usr/sbin", "bin", "sbin"}
	for i, directory := range directories {
		directories[i] = filepath.Join(p.debian, directory)
	}
	if p.containerd != "" {
		directories = append([]string{filepath.Join(p.containerd, "usr/bin")}, directories...)
	}
	for _, directory := range directories {
		found, err := filepath.Glob(filepath.Join(directory, "*"))
		if err != nil {
			return err
		}
		for _, path := range found {
			if err := os.Symlink(path, filepath.Join(dir, filepath.Base(path))); err != nil && !os.IsExist(err) {
				return err
			}
		}
	}
	return nil
}

// libraries is the search path of the unpacked libraries.
func (p programs) libraries() string {
	var dirs []string
	for _, pattern := range []string{"usr/lib/*-linux-gnu", "lib/*-linux-gnu"} {
		found, _ := filepath.Glob(filepath.Join(p.debian, pattern)) // the pattern is valid
		dirs = append(dirs, found...)
	}
	return strings.Join(dirs, ":")
}

func (p programs) file(name string) ([]byte, error) {
	content, err := os.ReadFile(filepath.Join(p.debian, name))
	if err != nil {
		return nil, fmt.Errorf("%s of Debian's packages: %w", name, err)
	}
	return content, nil
}
