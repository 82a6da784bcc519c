// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/internal/code"
)

// Feature is a feature that a kernel may lack.
type Feature struct {
	// Name describes it, such as "the helper bpf_redirect_peer".
	Name string

	// Since is the first version of Linux that has it, such as "5.10"; empty: not known.
	Since string

	// Have returns nil if the running kernel has it, and an error that matches
	// errors.ErrUnsupported, or ebpf.ErrNotSupported of github.com/cilium/ebpf, if not. Any
	// other error means that it could not be determined.
	Have func() error
}

// KernelFeatures checks for the kernel features that an agent needs. The zero value needs
// none. A missing feature is a failure; missing BTF is a warning, since an agent may have
// programs for kernels without it.
type KernelFeatures struct {
	// Agent is the agent's name, for the texts; empty: "the agent".
	Agent string

	// List holds the features without which the agent does not start.
	List []Feature

	// BTF says that the agent has programs that need the kernel's types.
	BTF bool

	btfFile string // for tests; empty: /sys/kernel/btf/vmlinux, in which the kernel shows its types
}

// Findings tries each feature: for most the kernel verifies a program, which is neither
// attached nor kept. Results are remembered for the life of the process. It needs CAP_BPF
// and CAP_PERFMON, or CAP_SYS_ADMIN, and before Linux 5.11 room for locked memory
// (setrlimit(2)).
func (k KernelFeatures) Findings(ctx context.Context) (findings []error, err error) {
	var unknown []error
	agent := cmp.Or(k.Agent, "the agent")
	for _, f := range k.List {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		switch err := f.Have(); {
		case err == nil:
		case isMissing(err):
			findings = append(findings, bootstrap.Certain(code.Errorf(code.PreflightKernelFeature, "the kernel lacks %s, without which %s does not start%s: %w", f.Name, agent, f.since(), err)))
		default:
			unknown = append(unknown, fmt.Errorf("%s: %w", f.Name, err))
		}
	}
	file := cmp.Or(k.btfFile, "/sys/kernel/btf/vmlinux")
	if _, err := os.Stat(file); k.BTF && errors.Is(err, fs.ErrNotExist) {
		findings = append(findings, code.Errorf(code.PreflightNoBTF, "%s does not exist: programs of %s that are built for all kernels do not load (boot a kernel that is built with CONFIG_DEBUG_INFO_BTF=y)", file, agent))
	} else if k.BTF && err != nil {
		unknown = append(unknown, err)
	}
	return findings, few(unknown)
}

func (f Feature) since() string {
	if f.Since == "" {
		return ""
	}
	return " (boot Linux " + f.Since + " or newer, or a kernel with a backport of it)"
}

// few returns the first error and the number of others, since they usually have one cause.
func few(errs []error) error {
	if len(errs) < 2 {
		return errors.Join(errs...)
	}
	return fmt.Errorf("%w, and %d more", errs[0], len(errs)-1)
}
