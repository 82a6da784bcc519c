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

	"github.com/slipway-dev/slipway/cniinstall"
)

func Example() {
	node, err := os.MkdirTemp("", "node")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(node)

	plugin := "#!/bin/sh\n" + `echo '{"cniVersion":"1.0.0","supportedVersions":["0.3.1","1.0.0"]}'`
	install := cniinstall.Cilium("")
	install.Plugins = fstest.MapFS{ // OpenPlugins("/plugins") in a pod
		"cilium-cni": {Data: []byte(plugin)},
		"loopback":   {Data: []byte(plugin)},
	}
	install.BinDir = filepath.Join(node, "bin")    // the zero value is /opt/cni/bin
	install.ConfDir = filepath.Join(node, "net.d") // the zero value is /etc/cni/net.d
	ctx := context.Background()
	for range 2 {
		changes, err := install.Check(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(changes), "changes")
		for _, change := range changes {
			fmt.Println(" ", strings.ReplaceAll(change, node, ""))
		}
		if err := install.Apply(ctx); err != nil {
			log.Fatal(err)
		}
	}

	install.Config = cniinstall.Whole("{\n  \"name\": \"mine\",\n  \"plugins\": [ {\"mtu\": 1500} ]\n}")
	if err := install.Apply(ctx); errors.Is(err, cniinstall.ErrInvalid) {
		fmt.Println(err)
	}
	// Output:
	// 5 changes
	//   make directory /bin
	//   make directory /net.d
	//   write file /bin/cilium-cni
	//   write file /bin/loopback
	//   write file /net.d/05-cilium.conflist
	// 0 changes
	// invalid CNI configuration 05-cilium.conflist, plugins[0]: error parsing configuration: missing 'type'
}
