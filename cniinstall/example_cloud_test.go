// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing/fstest"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/journal"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/configresolve"
)

// A managed cloud (here Tencent's TKE) chains an agent onto its own plugin: the whole
// configuration is a key of a ConfigMap. It is resolved, validated and installed as the only
// one; uninstalling restores the cloud's own.
func ExampleInstall_managedCloud() {
	node, err := os.MkdirTemp("", "node")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(node)
	volume, bin, conf := node+"/cni-configuration", node+"/opt/cni/bin", node+"/etc/cni/net.d"
	answer := "#!/bin/sh\n" + `echo '{"cniVersion":"0.3.1","supportedVersions":["0.3.1"]}'`
	files := map[string]string{
		volume + "/cni-config":   tkeChain, // the kubelet mounts the ConfigMap
		conf + "/00-multus.conf": `{"cniVersion": "0.3.1", "name": "tke", "type": "tke-bridge"}` + "\n",
		bin + "/loopback":        answer,
	}
	for path, content := range files {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o755)); err != nil {
			log.Fatal(err)
		}
	}
	show := func(title string) {
		fmt.Println(title)
		entries, err := os.ReadDir(conf)
		if err != nil {
			log.Fatal(err)
		}
		for _, e := range entries {
			fmt.Println("  " + e.Name())
		}
	}

	ctx := context.Background()
	config, err := configresolve.Resolve(ctx, configresolve.Dir{Path: volume})
	if err != nil {
		log.Fatal(err)
	}
	whole, _ := config.Lookup("cni-config")
	install := cniinstall.Cilium("")
	install.Plugins = fstest.MapFS{"cilium-cni": {Data: []byte(answer)}}
	install.BinDir, install.ConfDir = bin, conf
	install.Config, install.Exclusive = cniinstall.Whole(whole), true

	plan := bootstrap.Plan{
		Host: hostns.Host{Here: true, LockFile: node + "/lock"}, // in a pod: where the host's /proc is mounted
		Journal: &journal.Node{
			Dir: node + "/state", Agent: "acme", NoOwner: true, // in a pod: its UID as the Owner
			Handlers: []journal.Handler{cniinstall.Handler{ConfDir: conf}},
		},
		Steps: []bootstrap.Step{{Name: "cni", Action: install}},
	}

	show("before")
	_, err = plan.Apply(ctx)
	fmt.Println("the cloud's plugin is not there yet:", errors.Is(err, cniinstall.ErrPluginMissing))
	if err := os.WriteFile(bin+"/tke-route-eni", []byte(answer), 0o755); err != nil { // the cloud's installer runs
		log.Fatal(err)
	}
	report, err := plan.Apply(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.ReplaceAll(strings.Join(report.Results[0].Changes, "\n"), node, ""))
	fmt.Println("valid for a runtime:", cniinstall.Validate(ctx, []byte(whole), bin))
	show("installed")
	if _, err := plan.Revert(ctx); err != nil {
		log.Fatal(err)
	}
	show("uninstalled")
	// Output:
	// before
	//   00-multus.conf
	// the cloud's plugin is not there yet: true
	// write /opt/cni/bin/cilium-cni
	// write /etc/cni/net.d/05-cilium.conflist
	// set aside /etc/cni/net.d/00-multus.conf as 00-multus.conf.cilium_bak
	// valid for a runtime: <nil>
	// installed
	//   00-multus.conf.cilium_bak
	//   05-cilium.conflist
	// uninstalled
	//   00-multus.conf
}

// tkeChain is the configuration in a TKE cluster's ConfigMap.
const tkeChain = `{
  "cniVersion": "0.3.1",
  "name": "generic-veth",
  "plugins": [
    {
      "type": "tke-route-eni",
      "routeTable": 1,
      "disableIPv6": true,
      "mtu": 1500,
      "ipam": {
        "type": "tke-eni-ipamc",
        "backend": "127.0.0.1:61677"
      }
    },
    {
      "type": "cilium-cni",
      "chaining-mode": "generic-veth"
    }
  ]
}
`
