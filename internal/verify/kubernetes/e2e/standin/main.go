// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Command standin stands in for an agent: it says when it started, and waits until
// it is told to end.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	started := time.Now()
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	fmt.Println(started.Format(time.RFC3339Nano))
	<-told
}
