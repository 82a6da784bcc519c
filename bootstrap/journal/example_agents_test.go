// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal_test

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
	"github.com/slipway-dev/slipway/sysctl"
)

// sharedNode is a node in memory; its directories are in root.
type sharedNode struct {
	root   string
	kernel *bootstraptest.Kernel
}

// plan is the plan of an agent's own program. The agents of a node need to agree only on the
// journals' directory, which is the same by default.
func (n sharedNode) plan(agent string, values ...sysctl.Setting) *bootstrap.Plan {
	files := sysctl.Kernel{Files: n.kernel}
	return &bootstrap.Plan{
		Host: hostns.Host{Here: true, LockFile: filepath.Join(n.root, "lock")},
		Journal: &journal.Node{
			Dir: filepath.Join(n.root, "state"), Agent: agent, Owner: agent + "-pod",
			Handlers: []journal.Handler{bpffs.Handler{Kernel: n.kernel}, sysctl.Handler{Kernel: files}},
		},
		Steps: []bootstrap.Step{
			{Name: "bpffs", Action: bpffs.Mount{Path: filepath.Join(n.root, "bpf"), Kernel: n.kernel}},
			{Name: "sysctl", Action: sysctl.Settings{Values: values, Kernel: files}},
		},
	}
}

// show prints a run's changes.
func (n sharedNode) show(what string, report *bootstrap.Report, err error) {
	fmt.Println(what)
	for _, r := range report.Results {
		for _, change := range r.Changes {
			fmt.Println(" ", strings.ReplaceAll(change, n.root, ""))
		}
	}
	if err != nil {
		fmt.Println("  failed:", err)
	}
}

// Several agents on a node: a main CNI and a sensor. Both want a BPF file system, and one
// kernel value. The agent uninstalled first leaves the objects that the other wants; the
// last one restores the original that the first found.
func Example_severalAgents() {
	root, err := os.MkdirTemp("", "node")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	n, ctx := sharedNode{root, bootstraptest.NewKernel()}, context.Background()
	n.kernel.PutValue("net.core.bpf_jit_enable", "0")
	jit := sysctl.Setting{Key: "net.core.bpf_jit_enable", Value: "1"}

	cni, sensor := n.plan("cni", jit), n.plan("sensor", jit)
	report, err := cni.Apply(ctx)
	n.show("cni applies", report, err)
	report, err = sensor.Apply(ctx)
	n.show("sensor applies", report, err)

	// A third one that wants another value gets an error before anything is changed.
	_, err = n.plan("third", sysctl.Setting{Key: jit.Key, Value: "2"}).Apply(ctx)
	fmt.Println("a conflict:", errors.Is(err, journal.ErrConflict))

	asks := &journal.Node{Dir: filepath.Join(root, "state"), Agent: "admin", NoOwner: true}
	agents, err := asks.Agents(ctx, nil)
	for _, a := range agents {
		fmt.Printf("%s: %d recorded, owner %q, %v\n", a.Name, a.Entries, a.Owner, err)
	}

	report, err = cni.RevertAll(ctx)
	n.show("cni is uninstalled", report, err)
	report, err = sensor.RevertAll(ctx)
	n.show("sensor is uninstalled", report, err)
	// Output:
	// cni applies
	//   make directory /bpf
	//   mount bpf on /bpf
	//   set net.core.bpf_jit_enable = 1 (is 0)
	// sensor applies
	//   keep /bpf also for this agent: agent "cni" has made it
	//   keep net.core.bpf_jit_enable also for this agent: agent "cni" has made it
	// a conflict: true
	// cni: 3 recorded, owner "cni-pod", <nil>
	// sensor: 3 recorded, owner "sensor-pod", <nil>
	// third: 0 recorded, owner "", <nil>
	// cni is uninstalled
	//   leave net.core.bpf_jit_enable to agent "sensor", which wants it too
	//   leave /bpf to agent "sensor", which wants it too
	// sensor is uninstalled
	//   set net.core.bpf_jit_enable = 0 (is 1)
	//   unmount bpf from /bpf
	//   remove directory /bpf
}
