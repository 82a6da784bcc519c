// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/slipway-dev/slipway/bootstrap/cri"
	"github.com/slipway-dev/slipway/internal/critest"
)

// An agent asks the runtime for its directories before it installs.
func Example() {
	hostProc, stop := exampleNode() // in a pod, such as "/hostproc"
	defer stop()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	looks, err := cri.Endpoint{HostProc: hostProc}.CNI(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("it reads", looks.ConfDir, "and", looks.PluginDirs)
	// Output: it reads /var/lib/rancher/k3s/agent/etc/cni/net.d and [/var/lib/rancher/k3s/data/cni]
}

func exampleNode() (hostProc string, stop func()) {
	dir, err := os.MkdirTemp("", "cri")
	must(err)
	proc, root := filepath.Join(dir, "proc"), filepath.Join(dir, "root")
	const socket = "/run/k3s/containerd/containerd.sock"
	must(os.MkdirAll(filepath.Join(root, filepath.Dir(socket)), 0o755))
	must(os.MkdirAll(filepath.Join(proc, "1"), 0o755))
	must(os.Symlink(root, filepath.Join(proc, "1/root")))
	must(os.WriteFile(filepath.Join(proc, "1/status"), []byte("Uid:\t0\t0\t0\t0\n"), 0o644))
	must(os.WriteFile(filepath.Join(proc, "1/cgroup"), []byte("0::/init.scope\n"), 0o644))
	l, err := net.Listen("unix", filepath.Join(root, socket))
	must(err)
	k3s := &http.Server{
		Handler:   critest.Runtime{Info: critest.Containerd(nil, "/var/lib/rancher/k3s/agent/etc/cni/net.d", "/var/lib/rancher/k3s/data/cni")},
		Protocols: &http.Protocols{},
	}
	k3s.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = k3s.Serve(l) }() // stop ends it
	return proc, func() { must(errors.Join(k3s.Close(), os.RemoveAll(dir))) }
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
