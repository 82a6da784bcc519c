// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package preflight

import (
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

// Kernel returns a check for the kernel features without which an agent, of the name given for
// the texts, does not start. A missing one is a failure.
//
// The check tries each feature: for most the kernel verifies a program, which is neither
// attached nor kept. Results are remembered for the life of the process. It needs CAP_BPF
// and CAP_PERFMON, or CAP_SYS_ADMIN, and before Linux 5.11 room for locked memory
// (setrlimit(2)).
func Kernel(agent string, features ...Feature) func(context.Context) (findings []error, err error) {
	return func(ctx context.Context) (findings []error, err error) {
		var unknown []error
		for _, f := range features {
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
		return findings, summarize(unknown)
	}
}

// btfIn checks whether the kernel shows its types, which programs of the agent need. A
// finding is a warning, since an agent may have programs for kernels without them.
func btfIn(file, agent string) ([]error, error) {
	_, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return []error{code.Errorf(code.PreflightNoBTF, "%s does not exist: programs of %s that are built for all kernels do not load (boot a kernel that is built with CONFIG_DEBUG_INFO_BTF=y)", file, agent)}, nil
	}
	return nil, err
}

// Cilium checks for the kernel features that Cilium's agent needs. BTF is among the base
// requirements of 1.20 (CONFIG_DEBUG_INFO_BTF=y of
// Documentation/operations/system_requirements.rst). On systems other than Linux, the error
// matches [errors.ErrUnsupported].
func Cilium(ctx context.Context) (findings []error, err error) {
	findings, err = Kernel("Cilium", ciliumFeatures()...)(ctx)
	if errors.Is(err, errors.ErrUnsupported) {
		return findings, err
	}
	more, errBTF := btfIn("/sys/kernel/btf/vmlinux", "Cilium")
	return append(findings, more...), errors.Join(err, errBTF)
}

func (f Feature) since() string {
	if f.Since == "" {
		return ""
	}
	return " (boot Linux " + f.Since + " or newer, or a kernel with a backport of it)"
}

// summarize returns the first error and the number of others, since they usually have one cause.
func summarize(errs []error) error {
	if len(errs) < 2 {
		return errors.Join(errs...)
	}
	return fmt.Errorf("%w, and %d more", errs[0], len(errs)-1)
}
