// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command standin stands in for an agent: it says when it started, and waits until
// it is told to end. With a configuration as Cilium's, it writes that of the network where
// this says, as Cilium does when it is ready.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// network is Cilium's own.
const network = `{"cniVersion": "0.3.1", "name": "cilium", "plugins": [{"type": "cilium-cni", "enable-debug": false, "log-file": "/var/run/cilium/cilium-cni.log"}]}`

func main() {
	started := time.Now()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	for _, arg := range os.Args[1:] {
		if dir, is := strings.CutPrefix(arg, "--config-dir="); is {
			if err := publish(filepath.Join(dir, "write-cni-conf-when-ready")); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}
	fmt.Println(started.Format(time.RFC3339Nano))
	<-signals
}

// publish writes the network's configuration to the path that key holds, if there is one.
func publish(key string) error {
	path, err := os.ReadFile(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(strings.TrimSpace(string(path)), []byte(network), 0o600)
}
