// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command server is a real etcd or a real kube-apiserver, by the name that it
// is called by. One binary for both takes less to link and to keep.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	default:
		fmt.Fprintf(os.Stderr, "%s: call it by the name etcd or kube-apiserver\n", name)
		os.Exit(64)
	}
}
