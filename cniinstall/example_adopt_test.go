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

const (
	acmePlugin = "#!/bin/sh\n" + `echo '{"cniVersion":"1.0.0","supportedVersions":["1.0.0"]}'`
	acmeConf   = `{"cniVersion":"1.0.0","name":"acme","plugins":[{"type":"acme-cni"}]}`
)

// acmeNode is a directory that stands in for a node's root.
type acmeNode string

// script does what the agent's installer has done so far: it copies, and keeps no record.
func (n acmeNode) script() error {
	for path, file := range map[string]struct {
		content string
		mode    os.FileMode
	}{
		"bin/acme-cni":           {acmePlugin, 0o755},
		"bin/loopback":           {acmePlugin, 0o755},
		"net.d/10-acme.conflist": {acmeConf, 0o600},
	} {
		path = filepath.Join(string(n), path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(file.content), file.mode); err != nil {
			return err
		}
	}
	return nil
}

// plan replaces the script.
func (n acmeNode) plan(adopt bool) *bootstrap.Plan {
	in := func(name string) string { return filepath.Join(string(n), name) }
	return &bootstrap.Plan{
		Host: hostns.Host{Here: true, LockFile: in("lock")},
		Ledger: &ledger.Ledger{
			Dir: in("state"), Agent: "acme", Owner: "acme-pod", Adopt: adopt,
			Kinds: cniinstall.Uninstall{ConfDir: in("net.d")}.Kinds(),
		},
		Steps: []bootstrap.Step{{Name: "cni", Wants: cniinstall.Install{
			Plugins: fstest.MapFS{"acme-cni": {Data: []byte(acmePlugin)}, "loopback": {Data: []byte(acmePlugin)}},
			Config:  cniinstall.Whole(acmeConf),
			BinDir:  in("bin"), ConfDir: in("net.d"), ConfName: "10-acme.conflist",
		}}},
	}
}

// Moving from your installer: files that a script left, equal to those the agent installs, have
// no owner, and would stay when the agent is uninstalled. An agent that adopts them removes
// them then. A reference plugin may be the node's own, and is never adopted.
func Example_movingFromYourInstaller() {
	root, err := os.MkdirTemp("", "node")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	n, ctx := acmeNode(root), context.Background()
	if err := n.script(); err != nil {
		log.Fatal(err)
	}
	show := func(lines []string) {
		for _, line := range lines {
			fmt.Println(" ", strings.ReplaceAll(line, root, ""))
		}
	}

	report, err := n.plan(false).Check(ctx)
	fmt.Println("without Adopt:", report.Results[0].Status, err)
	show(report.Results[0].Advice)

	report, err = n.plan(true).Apply(ctx)
	fmt.Println("adopted:", report.Results[0].Status, err)
	show(report.Results[0].Adopted)

	report, err = n.plan(false).RevertAll(ctx) // by another process, which need not know that
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
