// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command apiserver is the kube-apiserver of a version of Kubernetes, whose go.mod is
// written when it is built.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
