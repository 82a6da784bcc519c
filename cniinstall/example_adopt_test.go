// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing/fstest"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cniinstall"
)

// Moving from your installer: files that it left, equal to those the agent installs, have no
// owner, and would stay when the agent is uninstalled. An agent that adopts them removes them
// then. A reference plugin may be the node's own, and is never adopted.
func Example_movingFromYourInstaller() {
	root, err := os.MkdirTemp("", "node")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	in, ctx := func(name string) string { return filepath.Join(root, name) }, context.Background()
	plugin := []byte("#!/bin/sh\n" + `echo '{"cniVersion":"1.0.0","supportedVersions":["1.0.0"]}'`)
	install := cniinstall.Install{
		Plugins: fstest.MapFS{"acme-cni": {Data: plugin}, "loopback": {Data: plugin}},
		Config:  cniinstall.Whole(`{"cniVersion":"1.0.0","name":"acme","plugins":[{"type":"acme-cni"}]}`),
		BinDir:  in("bin"), ConfDir: in("net.d"), ConfName: "10-acme.conflist",
	}
	if err := install.Apply(ctx); err != nil { // as the installer does: it keeps no record
		log.Fatal(err)
	}
	plan := func(adopt bool) *bootstrap.Plan {
		return &bootstrap.Plan{
			Host: hostns.Host{Here: true, LockFile: in("lock")},
			Ledger: &ledger.Ledger{
				Dir: in("state"), Agent: "acme", Owner: "acme-pod", Adopt: adopt,
				Kinds: cniinstall.Uninstall{ConfDir: in("net.d")}.Kinds(),
			},
			Steps: []bootstrap.Step{{Name: "cni", Wants: install}},
		}
	}
	show := func(lines []string) {
		for _, line := range lines {
			fmt.Println(" ", strings.ReplaceAll(line, root, ""))
		}
	}

	report, err := plan(false).Check(ctx)
	fmt.Println("without Adopt:", report.Results[0].Status, err)
	show(report.Results[0].Advice)

	report, err = plan(true).Apply(ctx)
	fmt.Println("adopted:", report.Results[0].Status, err)
	show(report.Results[0].Adopted)

	report, err = plan(false).RevertAll(ctx) // by another process, which need not know that
	fmt.Println("uninstalled:", report.Results[0].Status, err)
	show(report.Results[0].Changes)
	left, err := filepath.Glob(filepath.Join(root, "*", "*"))
	fmt.Println("left:", err)
	show(left)
	// Output:
	// without Adopt: unchanged <nil>
	//   /bin/acme-cni is present as wanted, and stays when the agent is undone, unless it is adopted
	//   /net.d/10-acme.conflist is present as wanted, and stays when the agent is undone, unless it is adopted
	// adopted: unchanged <nil>
	//   /bin/acme-cni
	//   /net.d/10-acme.conflist
	// uninstalled: changed <nil>
	//   remove file /net.d/10-acme.conflist
	//   remove file /bin/acme-cni
	// left: <nil>
	//   /bin/loopback
}
