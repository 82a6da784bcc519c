// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing/fstest"
	"text/template"

	"github.com/slipway-dev/slipway/cniinstall"
)

// This does what Calico's installer does: one program under two names in each of two writable
// folders, and a configuration rendered from a template that names a plugin of the node's
// image. As in AWS's installer, others may read the configuration.
func ExampleInstall_twoFolders() {
	node, err := os.MkdirTemp("", "node")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(node)

	conf := template.Must(template.New("").Parse(`{"name": "k8s-pod-network", "cniVersion": "1.0.0", "plugins": [
  {"type": "calico", "mtu": {{.MTU}}, "ipam": {"type": "calico-ipam"}},
  {"type": "portmap", "capabilities": {"portMappings": true}}
]}`))
	plugin := "#!/bin/sh\n" + `echo '{"cniVersion":"1.0.0","supportedVersions":["1.0.0"]}'`
	install := cniinstall.Install{
		Plugins:     fstest.MapFS{"calico": {Data: []byte(plugin)}}, // OpenPlugins("/opt/cni/bin") in a pod
		Names:       []string{"calico"},
		As:          map[string][]string{"calico": {"calico", "calico-ipam"}},
		BinDir:      filepath.Join(node, "bin"),
		AlsoBinDirs: []string{filepath.Join(node, "secondary-bin-dir")},
		Elsewhere:   []string{"portmap", "loopback"}, // part of the node's image
		Config: cniinstall.Func(func(context.Context) ([]byte, error) {
			var out bytes.Buffer
			err := conf.Execute(&out, map[string]int{"MTU": 1450})
			return out.Bytes(), err
		}),
		ConfDir: filepath.Join(node, "net.d"), ConfName: "10-calico.conflist", ConfMode: 0o644,
	}
	ctx := context.Background()
	changes, err := install.Check(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, change := range changes {
		fmt.Println(strings.ReplaceAll(change, node, ""))
	}
	if err := install.Apply(ctx); err != nil {
		log.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(node, "net.d/10-calico.conflist"))
	fmt.Println(info.Mode(), err)
	// Output:
	// make directory /bin
	// make directory /secondary-bin-dir
	// make directory /net.d
	// write /bin/calico
	// write /secondary-bin-dir/calico
	// write /bin/calico-ipam
	// write /secondary-bin-dir/calico-ipam
	// write /net.d/10-calico.conflist
	// -rw-r--r-- <nil>
}
