// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/bpffs"
	"github.com/slipway-dev/slipway/cgroup"
	"github.com/slipway-dev/slipway/sysctl"
)

// acmeAgent is an agent that prepares its own node. On a real node root is "/" and kernel the
// real one: the fields named Kernel are left out, and Host is hostns.Host{} for a process
// on the host, or hostns.Host{Proc: "/hostproc"} in a container.
type acmeAgent struct {
	root   string
	kernel *bootstraptest.Kernel
}

func (a acmeAgent) plan(podUID string) *bootstrap.Plan {
	in := func(path string) string { return filepath.Join(a.root, path) }
	values := sysctl.Kernel{Files: a.kernel}
	return &bootstrap.Plan{
		Host: hostns.Host{Here: true, LockFile: in("lock")},
		Journal: &journal.Node{
			Dir: in("state"), Agent: "acme", Owner: podUID,
			Handlers: []journal.Handler{cgroup.Handler{Kernel: a.kernel}, bpffs.Handler{Kernel: a.kernel}, sysctl.Handler{Kernel: values}},
		},
		Steps: []bootstrap.Step{
			{Name: "cgroup", Action: cgroup.Mount{Path: in("cgroup"), Kernel: a.kernel}},
			{Name: "bpffs", Action: bpffs.Mount{Path: in("bpf"), Kernel: a.kernel}},
			{Name: "jit", Action: sysctl.Settings{Kernel: values, Values: []sysctl.Setting{{Key: "net.core.bpf_jit_enable", Value: "1"}}}},
		},
	}
}

// Embed it: an agent's start, the start of the pod that replaces it in a rolling update,
// the end of the first pod, which no longer has a say, and the removal of the agent.
func Example_embed() {
	root, err := os.MkdirTemp("", "node")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	ctx, a := context.Background(), acmeAgent{root, bootstraptest.NewKernel()}
	a.kernel.PutValue("net.core.bpf_jit_enable", "0")
	show := func(event string, report *bootstrap.Report) {
		fmt.Println(event)
		for _, r := range report.Results {
			for _, change := range r.Changes {
				fmt.Printf("  %s: %s\n", r.Step, strings.ReplaceAll(change, root, ""))
			}
		}
	}

	older, newer := a.plan("pod-1"), a.plan("pod-2")
	report, err := older.Apply(ctx)
	if err != nil {
		log.Fatal(err)
	}
	show("the first pod starts", report)

	report, err = newer.Apply(ctx) // everything is in place: it only becomes the owner
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the second pod starts:", report.Summary())

	_, err = older.RevertAll(ctx)
	fmt.Println("the first pod may not undo it:", errors.Is(err, journal.ErrNotOwner))

	report, err = newer.RevertAll(ctx)
	if err != nil {
		log.Fatal(err)
	}
	show("the agent is removed", report)
	// Output:
	// the first pod starts
	//   cgroup: make directory /cgroup
	//   cgroup: mount cgroup2 on /cgroup
	//   bpffs: make directory /bpf
	//   bpffs: mount bpf on /bpf
	//   jit: set net.core.bpf_jit_enable = 1 (is 0)
	// the second pod starts: 3 steps: 3 unchanged
	// the first pod may not undo it: true
	// the agent is removed
	//   jit: set net.core.bpf_jit_enable = 0 (is 1)
	//   bpffs: unmount bpf from /bpf
	//   bpffs: remove directory /bpf
	//   cgroup: unmount cgroup2 from /cgroup
	//   cgroup: remove directory /cgroup
}
